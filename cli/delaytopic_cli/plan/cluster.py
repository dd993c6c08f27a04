"""Edge: reads what a plan is compared with, through kubectl. Nothing is written, and no Secret is read."""

from __future__ import annotations

from collections.abc import Iterable

from delaytopic_api.errors import ApiError
from delaytopic_api.loading import parse_yaml, validate
from delaytopic_cli.kubectl.client import Kubectl, KubectlFailed
from delaytopic_cli.plan.errors import NoPlan
from delaytopic_operator.offline import ClusterState, Document, Documents, OperatorConfig

MADE = "configmaps,serviceaccounts,deployments,poddisruptionbudgets,networkpolicies,cronjobs"
MANAGED = "app.kubernetes.io/managed-by=delaytopic-operator"
OPERATOR = "app.kubernetes.io/part-of=delaytopic,app.kubernetes.io/component=operator"
CONFIG_KEY = "operator.yaml"


def read_cluster(kubectl: Kubectl, documents: Documents, config: OperatorConfig | None) -> ClusterState:
    """Read everything that concerns the documents; `config` None: as the operator's ConfigMap in the cluster has it.

    Raises `NoPlan`.
    """
    notes: list[str] = []
    try:
        if config is None:
            config = _config(kubectl, documents, notes)
        topics = _topics(kubectl, documents, notes)
        classes = _classes(kubectl, notes)
        namespaces = _namespaces(kubectl, documents, notes)
        recurring = _recurring(kubectl, documents, notes)
        unseen: set[str] = set()
        places = _places(documents, topics, classes, config)
        made = [each for place in sorted(places) for each in _made(kubectl, place, unseen)]
    except KubectlFailed as error:
        raise NoPlan(str(error)) from error
    if unseen:
        notes.append(
            f"what the operator made in {', '.join(sorted(unseen))} may not be read: it is taken to be as the operator "
            "makes it"
        )
    return ClusterState(
        config=config,
        is_there=True,
        topics=topics,
        classes=classes,
        namespaces=namespaces,
        recurring=recurring,
        made=made,
        unseen=frozenset(unseen),
        notes=notes,
    )


def _topics(kubectl: Kubectl, documents: Documents, notes: list[str]) -> list[Document]:
    """Read all DelayTopics, whose topics may conflict; where that is forbidden, those of the documents' namespaces."""
    try:
        return kubectl.items("delaytopics", "--all-namespaces")
    except KubectlFailed as error:
        if error.reason != "Forbidden":
            raise
    places = sorted({each["metadata"]["namespace"] for each in (*documents.topics, *documents.recurring)})
    notes.append("DelayTopics of other namespaces may not be listed: conflicts with them are not seen")
    return [each for place in places for each in kubectl.within(place).items("delaytopics")]


def _recurring(kubectl: Kubectl, documents: Documents, notes: list[str]) -> list[Document]:
    """Read the RecurringRecords of the documents' namespaces; with a class or a namespace among them all that may be
    listed, as those may take something from each.
    """
    if documents.classes or documents.namespaces:
        try:
            return kubectl.items("recurringrecords", "--all-namespaces")
        except KubectlFailed as error:
            if error.reason != "Forbidden":
                raise
            notes.append("RecurringRecords of other namespaces may not be listed: what becomes of them is not told")
    found: list[Document] = []
    for place in sorted({each["metadata"]["namespace"] for each in (*documents.topics, *documents.recurring)}):
        try:
            found += kubectl.within(place).items("recurringrecords")
        except KubectlFailed as error:
            if error.reason != "Forbidden":
                raise
            unseen = "those of the files are taken to be new, and what becomes of others is not told"
            notes.append(f"RecurringRecords of {place} may not be listed: {unseen}")
    return found


def _classes(kubectl: Kubectl, notes: list[str]) -> list[Document]:
    try:
        return kubectl.items("delayclasses")
    except KubectlFailed as error:
        if error.reason != "Forbidden":
            raise
    notes.append("DelayClasses may not be listed: only those of the files are known")
    return []


def _namespaces(kubectl: Kubectl, documents: Documents, notes: list[str]) -> dict[str, Document | None]:
    """Read those of the documents; with a class of them all that may be listed, as it may take rights from each."""
    names = {each["metadata"]["namespace"] for each in (*documents.topics, *documents.recurring)}
    names |= {each["metadata"]["name"] for each in documents.namespaces}
    found: dict[str, Document | None] = {}
    if documents.classes:
        try:
            listed = {each["metadata"]["name"]: each for each in kubectl.items("namespaces")}
            return {**dict.fromkeys(names), **listed}
        except KubectlFailed as error:
            if error.reason != "Forbidden":
                raise
    for name in sorted(names):
        try:
            found[name] = kubectl.find("namespace", name)
        except KubectlFailed as error:
            if error.reason != "Forbidden":
                raise
            notes.append(f"the namespace {name} may not be read")
    return found


def _places(
    documents: Documents, topics: Iterable[Document], classes: Iterable[Document], config: OperatorConfig
) -> set[str]:
    """Return the namespaces in which the operator makes anything for these documents."""
    named = [*classes, *documents.classes]
    chosen = {(each.get("spec") or {}).get("relayNamespace") for each in named}
    own = {each["metadata"]["namespace"] for each in documents.topics}
    return own | {config.namespace} | {place for place in chosen if place}


def _made(kubectl: Kubectl, place: str, unseen: set[str]) -> list[Document]:
    try:
        return kubectl.within(place).items(MADE, f"--selector={MANAGED}")
    except KubectlFailed as error:
        if error.reason != "Forbidden":
            raise
        unseen.add(place)
        return []


def _config(kubectl: Kubectl, documents: Documents, notes: list[str]) -> OperatorConfig:
    """Return the settings of the operator that looks after the documents; the defaults when none can be told."""
    configs = _operators(kubectl)
    chosen = configs if len(configs) == 1 else [each for each in configs if _looks_after(each, documents)]
    if len(chosen) == 1:
        return chosen[0]
    seen = "settings of several operators are" if configs else "the operator's settings are not"
    notes.append(f"{seen} to be seen: the defaults are taken, or name some: --operator-config")
    return OperatorConfig()


def _operators(kubectl: Kubectl) -> list[OperatorConfig]:
    """Return the settings of all operators; where that is forbidden, of those in the usual namespace."""
    for search, everywhere in ((kubectl, ["--all-namespaces"]), (kubectl.within(OperatorConfig().namespace), [])):
        try:
            found = search.items("configmaps", *everywhere, f"--selector={OPERATOR}")
        except KubectlFailed as error:
            if error.reason != "Forbidden":
                raise
            continue
        texts = [each["data"][CONFIG_KEY] for each in found if CONFIG_KEY in (each.get("data") or {})]
        return [parsed_config(text, "the operator's ConfigMap") for text in texts]
    return []


def _looks_after(config: OperatorConfig, documents: Documents) -> bool:
    """Return whether this operator reconciles all objects of the documents that have a namespace."""
    places = {each["metadata"]["namespace"] for each in (*documents.topics, *documents.recurring)}
    return not config.watch_namespaces or places <= {*config.watch_namespaces}


def parsed_config(text: str, origin: str) -> OperatorConfig:
    """Return the one document of a text; raises `NoPlan`."""
    try:
        contents = [content for content in parse_yaml(text, origin) if content is not None]
        if len(contents) != 1 or not isinstance(contents[0], dict):
            raise NoPlan(f"{origin}: must hold one OperatorConfig")
        return validate(OperatorConfig, contents[0], origin)
    except ApiError as error:
        raise NoPlan(str(error)) from error
