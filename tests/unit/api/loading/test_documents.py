from __future__ import annotations

import pytest
import yaml
from tests.support.paths import DATA

from delaytopic_api import (
    DelayClass,
    DelayTopic,
    InvalidDocument,
    RecurringRecord,
    dump_yaml,
    load_document,
    load_documents,
)
from delaytopic_api.loading import parse_yaml

API_DATA = DATA / "api"
TOPIC = """
apiVersion: delaytopic.dev/v1beta1
kind: DelayTopic
metadata: {name: reminders, namespace: shop}
spec: {source: {topic: a}, target: {topic: b}}
"""
RECURRING = """
apiVersion: delaytopic.dev/v1beta1
kind: RecurringRecord
metadata: {name: report, namespace: shop}
spec: {delayTopic: reminders, cron: 0 9 * * mon-fri, timeZone: Europe/Berlin}
"""


def lines_of(text: str, origin: str = "") -> list[str]:
    with pytest.raises(InvalidDocument) as refused:
        load_documents(text, origin)
    return str(refused.value).splitlines()


def test_three_lines_of_spec_are_enough() -> None:
    [topic] = load_documents(TOPIC)

    assert isinstance(topic, DelayTopic)
    assert (topic.full_name, topic.spec.source.topic, topic.spec.target.topic) == ("shop/reminders", "a", "b")


def test_documents_come_in_the_order_of_the_file_and_empty_ones_do_not_count() -> None:
    text = "---\n" + TOPIC + "---\n---\n" + (API_DATA / "accepted_delay_class.yaml").read_text() + "---\n# nothing\n"

    assert [type(document) for document in load_documents(text)] == [DelayTopic, DelayClass]


def test_a_recurring_record_is_read_beside_its_delay_topic() -> None:
    documents = load_documents(f"{TOPIC}---{RECURRING}")

    assert [type(document) for document in documents] == [DelayTopic, RecurringRecord]
    assert load_documents("---\n".join(map(dump_yaml, documents))) == documents


def test_a_rule_that_cannot_be_read_is_a_problem_of_its_field_in_its_document() -> None:
    assert lines_of(RECURRING.replace("0 9 * * mon-fri", "0 9 31 2 *"), "report.yaml") == [
        "report.yaml: RecurringRecord shop/report: spec.cron: header deliver-cron is '0 9 31 2 *', which cannot be "
        "read: bad day-of-month"
    ]


def test_a_text_without_documents_is_an_empty_list() -> None:
    assert load_documents("# nothing\n") == []


@pytest.mark.parametrize("file", ["accepted_delay_topics.yaml", "accepted_delay_class.yaml"])
def test_a_document_survives_being_written_and_read_again(file: str) -> None:
    documents = load_documents((API_DATA / file).read_text())

    again = load_documents("---\n".join(dump_yaml(document) for document in documents))

    assert again == documents


def test_every_field_of_a_written_document_is_what_the_author_wrote() -> None:
    text = (API_DATA / "accepted_delay_topics.yaml").read_text()
    written = list(yaml.safe_load_all(text))[1]

    loaded = load_documents(text)[1].to_document()

    assert {name: loaded["spec"][name] for name in written["spec"]} == written["spec"]


def test_the_problems_of_all_documents_are_told_at_once_each_with_its_document() -> None:
    text = TOPIC.replace("reminders", "one").replace("topic: b", "topic: a") + "---" + TOPIC.replace("spec:", "specs:")

    assert lines_of(text, "reminders.yaml") == [
        "reminders.yaml: DelayTopic shop/one: spec.target.topic: must differ from source.topic",
        "reminders.yaml: DelayTopic shop/reminders: spec: is required",
        "reminders.yaml: DelayTopic shop/reminders: specs: is not a field; did you mean spec? "
        "Allowed: apiVersion, kind, metadata, spec, status",
    ]


def test_a_document_without_a_name_goes_by_its_number() -> None:
    text = TOPIC + "---\nkind: DelayTopic\napiVersion: delaytopic.dev/v1beta1\nmetadata: {}\nspec: {}\n"

    assert lines_of(text) == [
        "document 2: metadata.name: is required",
        "document 2: spec.source: is required",
        "document 2: spec.target: is required",
    ]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "kind: Deployment",
            'document 1: kind: "Deployment" is not known here; allowed: DelayTopic, DelayClass, RecurringRecord',
        ),
        ("metadata: {name: x}", "document 1: kind: is required; allowed: DelayTopic, DelayClass, RecurringRecord"),
        ("kind: 5", 'document 1: kind: "5" is not known here; allowed: DelayTopic, DelayClass, RecurringRecord'),
        ("just text", "document 1: must be a mapping of fields"),
        ("- a\n- b", "document 1: must be a mapping of fields"),
        (
            "a: {on: x}",
            "line 1, column 5: cannot be read as YAML: the name of a field must be text, not on; put it in quotes",
        ),
        (
            "? [a]\n: b",
            "line 1, column 3: cannot be read as YAML: "
            "the name of a field must be text, not a list or mapping; put it in quotes",
        ),
        ("a: b\nc: [", "line 3, column 1: cannot be read as YAML: did not find expected node content"),
        ("a: 1\na: 2", 'line 2, column 1: cannot be read as YAML: "a" is there twice'),
        (
            "a: !!python/object:os.system {}",
            "line 1, column 4: cannot be read as YAML: could not determine a constructor for the tag "
            "'tag:yaml.org,2002:python/object:os.system'",
        ),
        (
            "a: \x00",
            "cannot be read as YAML: unacceptable character #x0000: control characters are not allowed in "
            '"<unicode string>", position 3',
        ),
    ],
)
def test_what_is_not_a_document_is_refused(text: str, line: str) -> None:
    assert lines_of(text) == [line]


def test_a_field_that_is_written_twice_is_refused_as_the_api_server_does() -> None:
    text = TOPIC + "  # once more\nspec: {source: {topic: c}, target: {topic: d}}\n"

    assert lines_of(text, "x.yaml") == ['x.yaml: line 7, column 1: cannot be read as YAML: "spec" is there twice']


def test_merge_keys_and_anchors_work_as_in_any_yaml() -> None:
    text = TOPIC.replace("{topic: a}", "&a {topic: a, partitions: 4}").replace("{topic: b}", "{<<: *a, topic: b}")

    [topic] = load_documents(text)

    assert isinstance(topic, DelayTopic)
    assert (topic.spec.target.topic, topic.spec.target.partitions) == ("b", 4)


def test_what_is_merged_may_be_merged_again_with_fields_of_its_own() -> None:
    spec = "spec: {source: &a {topic: a, partitions: 4}, target: &b {<<: *a, topic: b}, deadLetter: {<<: *b, topic: c}}"

    [topic] = load_documents(TOPIC.replace("spec: {source: {topic: a}, target: {topic: b}}", spec))

    assert isinstance(topic, DelayTopic)
    assert topic.spec.dead_letter is not None
    assert (topic.spec.dead_letter.topic, topic.spec.dead_letter.partitions) == ("c", 4)


def test_a_time_is_text_with_or_without_quotes_as_it_is_for_the_api_server() -> None:
    assert parse_yaml("{bare: 2026-11-21T02:00:00Z, quoted: '2026-11-21T02:00:00Z', day: 2026-11-21}") == [
        {"bare": "2026-11-21T02:00:00Z", "quoted": "2026-11-21T02:00:00Z", "day": "2026-11-21"}
    ]


def test_two_documents_of_the_same_name_are_refused() -> None:
    assert lines_of(TOPIC + "---" + TOPIC) == [
        "DelayTopic shop/reminders: metadata.name: is there twice; each document needs a name of its own"
    ]


def test_a_list_as_kubectl_prints_it_counts_as_its_items() -> None:
    topic = yaml.safe_load(TOPIC)
    items = [topic, yaml.safe_load((API_DATA / "accepted_delay_class.yaml").read_text())]
    lists = {"apiVersion": "v1", "kind": "List", "items": [{"kind": "DelayTopicList", "items": items}]}

    assert load_documents(yaml.safe_dump(lists)) == [load_document(item) for item in items]


def test_what_is_wrong_in_a_list_is_told_with_its_place() -> None:
    text = "kind: List\nitems: [{}, [], {kind: DelayTopicList, items: [5]}]\n---\nkind: List\nitems: 5\n"

    assert lines_of(text, "a.yaml") == [
        "a.yaml: document 1, item 1: kind: is required; allowed: DelayTopic, DelayClass, RecurringRecord",
        "a.yaml: document 1, item 2: must be a mapping of fields",
        "a.yaml: document 1, item 3, item 1: must be a mapping of fields",
        "a.yaml: document 2: items: must be a list",
    ]


def test_the_same_name_in_two_namespaces_is_two_documents() -> None:
    documents = load_documents(TOPIC + "---" + TOPIC.replace("namespace: shop", "namespace: bakery"))

    assert [document.full_name for document in documents if isinstance(document, DelayTopic)] == [
        "shop/reminders",
        "bakery/reminders",
    ]


def test_an_object_from_the_api_server_is_read_with_all_that_it_adds() -> None:
    stored = {
        "apiVersion": "delaytopic.dev/v1beta1",
        "kind": "DelayTopic",
        "metadata": {
            "name": "reminders",
            "namespace": "shop",
            "uid": "0b6f",
            "generation": 3,
            "creationTimestamp": "2026-11-21T12:00:00Z",
            "managedFields": [{"manager": "kubectl"}],
        },
        "spec": {"source": {"topic": "a"}, "target": {"topic": "b"}},
        "status": {
            "observedGeneration": 3,
            "fromTheFuture": True,
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True",
                    "lastTransitionTime": "2026-11-21T12:00:05Z",
                    "reason": "Delivering",
                    "message": "",
                }
            ],
        },
    }

    topic = load_document(stored)

    assert isinstance(topic, DelayTopic)
    assert topic.status is not None
    assert (topic.metadata.generation, topic.status.observed_generation) == (3, 3)


def test_a_few_lines_cannot_stand_for_a_billion_fields() -> None:
    laughs = ["a0: &a0 [x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10))]

    assert lines_of("\n".join(laughs), "laughs.yaml") == [
        "laughs.yaml: line 1, column 1: cannot be read as YAML: its aliases stand for more than 10000 fields; write "
        "less of them"
    ]


def test_aliases_that_stand_for_little_are_what_they_stand_for() -> None:
    [topic] = load_documents(
        TOPIC.replace("{topic: a}", "{topic: &it a}").replace("{topic: b}", "{topic: b, config: {cleanup.policy: *it}}")
    )

    assert isinstance(topic, DelayTopic)
    assert topic.spec.target.config == {"cleanup.policy": "a"}


@pytest.mark.parametrize("text", ["[" * 201 + "]" * 201, '{"a": ' * 201 + "1" + "}" * 201, '{"a": ' * 100_000])
def test_what_is_nested_too_deeply_is_refused_in_a_sentence(text: str) -> None:
    assert lines_of(text, "deep.yaml") == ["deep.yaml: cannot be read as YAML: it is nested too deeply"]


def test_what_is_nested_far_too_deeply_is_refused_where_it_begins() -> None:
    assert lines_of("[" * 100_000, "deep.yaml") == [
        "deep.yaml: line 1, column 1001: cannot be read as YAML: it is nested too deeply"
    ]


def test_text_that_is_none_in_utf_8_is_refused_in_a_sentence() -> None:
    assert lines_of("a: \udcff") == ["cannot be read as YAML: it is no text in UTF-8"]
