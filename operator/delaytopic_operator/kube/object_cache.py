"""The objects as last seen, in memory: fed by watches, by the resync's lists and by the operator's own writes.

Thread-safe. Objects are kept as JSON text: a fifth of the memory of dicts, and whoever reads gets a copy of their own.
"""

from __future__ import annotations

import builtins
import json
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Mapping
from threading import RLock
from typing import Any, Final, NamedTuple

from delaytopic_operator.kube.indexers import (
    NO_CLASS,
    Document,
    Term,
    audit_of,
    class_term,
    made_for_audit_term,
    made_for_term,
    own_connection_term,
    owner_of,
    recurring_term,
    secret_term,
    terms_of,
)
from delaytopic_operator.model import kinds
from delaytopic_operator.model.kinds import Kind, kind_of
from delaytopic_operator.model.reconciliation import Key, audit_key, class_key

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
CONTENTS = ("data", "binaryData")
LARGEST_CONTENTS = 64 << 10
"""The longest ConfigMap that is kept, in characters: a relay's is a few thousand. Without its contents it counts as
changed by others."""
LARGEST_LABELS = 64 << 10
"""The labels that are kept of what people declare, in characters, and as many of annotations: Kubernetes bounds no
labels."""
REMEMBERED_DELETIONS = 5_000
REMEMBERED_WRITES = 10_000
REMEMBERED_NEWS = 2_000
"""The number of changes of each kind that are kept; a caller who asks for older ones looks at all objects."""
NEVER: Final = -1
"""The revision of what was not read yet."""


class Ref(NamedTuple):
    """The place of an object; `kind` is the plural."""

    kind: str
    namespace: str
    name: str


class News(NamedTuple):
    """The objects of a kind that came, changed or went."""

    revision: int
    """The revision as of which they did."""
    versions: Mapping[Ref, int | None]
    """A number for each that changes when the object does; None for one that is gone."""
    is_all: bool
    """True if there are no others: what is not among them is gone, too."""


class _Entry(NamedTuple):
    text: bytes
    version: int
    terms: frozenset[Term]
    changed: int
    """The version at which anybody else than the operator changed it last."""
    changed_if_own: int
    """The same where this state is the operator's own: its watch may bring it before the answer to the write comes."""


class ObjectCache:
    """The objects of the cluster, as far as they are watched. An older state never replaces a newer one, whatever
    comes first.
    """

    def __init__(self, operator_namespace: str, watch_namespaces: Collection[str] = ()) -> None:
        """`watch_namespaces`: DelayTopics elsewhere are ignored; empty: there are none to ignore."""
        self._operator_namespace = operator_namespace
        self._watched = frozenset(watch_namespaces)
        self._lock = RLock()
        self._entries: dict[str, dict[Ref, _Entry]] = defaultdict(dict)
        self._by_term: dict[Term, set[Ref]] = defaultdict(set)
        self._deleted: OrderedDict[Ref, int] = OrderedDict()
        self._own: OrderedDict[Ref, int] = OrderedDict()
        self._revisions: Counter[str] = Counter()
        self._news: defaultdict[str, deque[Ref]] = defaultdict(lambda: deque(maxlen=REMEMBERED_NEWS))
        """The objects of the last revisions of each kind, one for each."""

    # -- feeding

    def put(self, document: Document) -> bool:
        """The object is so now; whether that was news."""
        kind, ref, version = kind_of(document), _ref(document), _version(document)
        if kind == kinds.DELAY_TOPIC and not self.concerns(Key(ref.namespace, ref.name)):
            return False
        with self._lock:
            if self._is_no_news(ref, version):
                return False  # a list of thousands that are known is not written anew
        return self._take(document, _text(document, self._operator_namespace))

    def remove(self, document: Document) -> bool:
        """The object is gone, and was so last; whether that was news."""
        ref, version = _ref(document), _version(document)
        with self._lock:
            known = self._entries[ref.kind].get(ref)
            if known is not None and known.version > version:
                return False
            self._deleted[ref] = max(version, self._deleted.pop(ref, -1))
            while len(self._deleted) > REMEMBERED_DELETIONS:
                self._deleted.popitem(last=False)
            self._forget(ref)
            return known is not None

    def written(self, document: Document) -> None:
        """The operator itself has just made the object so.

        An answer that shows what somebody else has declared since is left to the watch, which tells of that.
        """
        kind, ref, version = kind_of(document), _ref(document), _version(document)
        text = _text(document, self._operator_namespace)
        with self._lock:
            known = self._entries[ref.kind].get(ref)
            if known is not None and known.version < version and not _is_declared_alike(known.text, text, kind):
                return
            self._own[ref] = version
            self._own.move_to_end(ref)
            if len(self._own) > REMEMBERED_WRITES:
                self._own.popitem(last=False)
            if known is not None and known.version == version:
                self._entries[ref.kind][ref] = known._replace(changed=known.changed_if_own)
        self._take(document, text)

    def deleted(self, document: Document) -> None:
        """The operator itself has just deleted the object."""
        self.remove(document)

    def is_own(self, document: Document) -> bool:
        """Return whether this very state of the object is what the operator itself wrote last."""
        with self._lock:
            return self._own.get(_ref(document)) == _version(document)

    def keep_only(
        self, kind: Kind, namespace: str | None, listed: Collection[Ref], as_of: str
    ) -> builtins.list[Document]:
        """Forget what a whole list of the namespace (None: of all) did not have, and answer with it.

        `as_of`: the list's resourceVersion; what is newer stays.
        """
        version = _number(as_of)
        with self._lock:
            gone = [
                ref
                for ref, entry in self._entries[kind.plural].items()
                if ref not in listed and namespace in {None, ref.namespace} and entry.version <= version
            ]
            entries = [self._entries[ref.kind][ref] for ref in gone]
            for ref in gone:
                self._forget(ref)
        return [_parsed(entry) for entry in entries]

    # -- reading

    def get(self, kind: Kind, namespace: str | None, name: str) -> Document | None:
        """The object as last seen."""
        with self._lock:
            entry = self._entries[kind.plural].get(Ref(kind.plural, namespace or "", name))
        return _parsed(entry) if entry is not None else None

    def list(self, kind: Kind, namespace: str | None = None) -> builtins.list[Document]:
        """All objects of the kind, or those in the namespace."""
        with self._lock:
            entries = self._sorted(ref for ref in self._entries[kind.plural] if namespace in {None, ref.namespace})
        return [_parsed(entry) for entry in entries]

    def revision(self, kind: Kind) -> int:
        """Another number whenever an object of the kind came, changed or went."""
        with self._lock:
            return self._revisions[kind.plural]

    def versions(self, kind: Kind) -> dict[Ref, int]:
        """Return which objects of the kind there are, and a number for each that changes when the object does."""
        with self._lock:
            return {ref: entry.version for ref, entry in self._entries[kind.plural].items()}

    def changes_of(self, key: Key) -> frozenset[tuple[Ref, int]]:
        """Return a DelayTopic and the objects made for it, pods among them, each with the version at which anybody
        else than the operator itself changed it last.
        """
        own = Ref(kinds.DELAY_TOPIC.plural, *key)
        with self._lock:
            refs = [own, *self._by_term.get(made_for_term(key), ())]
            found = ((ref, self._entries[ref.kind].get(ref)) for ref in refs)
            return frozenset((ref, entry.changed) for ref, entry in found if entry is not None)

    def news(self, kind: Kind, revision: int) -> News:
        """Return what came, changed or went since a revision; all that there is where that is too long ago."""
        with self._lock:
            entries, now, news = self._entries[kind.plural], self._revisions[kind.plural], self._news[kind.plural]
            passed = now - revision
            is_all = passed > len(news)
            refs = entries.keys() if is_all else {news[-back] for back in range(1, passed + 1)}
            found = {ref: entries[ref].version if ref in entries else None for ref in refs}
            return News(now, found, is_all)

    def objects_of(self, key: Key, kind: Kind | None = None) -> builtins.list[Document]:
        """The objects made for a DelayTopic, of all kinds or of one, pods among them; also when it is gone."""
        return self._with(made_for_term(key), lambda ref: kind is None or ref.kind == kind.plural)

    def of_class(self, name: str | None) -> builtins.list[Document]:
        """The DelayTopics of a class; None: those that take the default one."""
        return self._with(class_term(name or NO_CLASS))

    def with_own_connection(self, namespace: str) -> builtins.list[Document]:
        """The DelayTopics of a namespace that have no class."""
        return self._with(own_connection_term(namespace))

    def objects_of_audit(self, audit: Key) -> builtins.list[Document]:
        """The objects made to audit the DelayTopics of a class or of a namespace, pods among them; also when it is
        gone.
        """
        return self._with(made_for_audit_term(audit))

    def with_secret(self, namespace: str, name: str) -> builtins.list[Document]:
        """The DelayTopics and classes that use a Secret."""
        return self._with(secret_term(namespace, name))

    def counts(self) -> dict[str, int]:
        """Return how many objects are known, by resource."""
        with self._lock:
            return {plural: len(entries) for plural, entries in self._entries.items()}

    def keys(self) -> set[Key]:
        """All DelayTopics, and those that are gone while there are still objects of theirs."""
        with self._lock:
            topics = {Key(ref.namespace, ref.name) for ref in self._entries[kinds.DELAY_TOPIC.plural]}
            owners = {Key(term[1], term[2]) for term in self._by_term if term[0] == "made-for"}
        return topics | {key for key in owners if self.concerns(key)}

    def class_keys(self) -> set[Key]:
        """All DelayClasses."""
        with self._lock:
            return {class_key(ref.name) for ref in self._entries[kinds.DELAY_CLASS.plural]}

    def audit_keys(self) -> set[Key]:
        """All audits that there may be, and those of which there are objects."""
        with self._lock:
            made = {Key(*term[1:]) for term in self._by_term if term[0] == "made-for-audit"}
            namespaces = {Key(term[1], "") for term in self._by_term if term[0] == "own-connection"}
        return self.class_keys() | {key for key in made | namespaces if not key.namespace or self.concerns(key)}

    def recurring_keys(self) -> set[Key]:
        """All RecurringRecords."""
        with self._lock:
            keys = {Key(ref.namespace, ref.name) for ref in self._entries[kinds.RECURRING_RECORD.plural]}
        return {key for key in keys if self.concerns(key)}

    def recurring(self) -> builtins.list[Document]:
        """All RecurringRecords as last seen."""
        return [each for each in self.list(kinds.RECURRING_RECORD) if self.concerns(_key(each))]

    def concerns(self, key: Key) -> bool:
        """Return whether DelayTopics of that namespace are looked after."""
        return not self._watched or key.namespace in self._watched

    # -- what an event is about

    def requests_for(self, kind: Kind, document: Document) -> set[Key]:
        """The DelayTopics to look at because of this object, whatever happened to it."""
        metadata = document["metadata"]
        match kind:
            case kinds.DELAY_TOPIC:
                keys = {Key(metadata["namespace"], metadata["name"])}
            case kinds.DELAY_CLASS:
                keys = self._keys_of_class(metadata["name"])
            case kinds.SECRET:
                keys = self._keys_of_secret(metadata["namespace"], metadata["name"])
            case kinds.NAMESPACE:
                keys = {key for key in self.keys() if key.namespace == metadata["name"]}
            case kinds.RECURRING_RECORD:
                keys = set()
            case _:
                owner = owner_of(document)
                keys = {owner} if owner is not None else set()
        return {key for key in keys if self.concerns(key)}

    def class_requests_for(self, kind: Kind, document: Document) -> set[Key]:
        """The DelayClasses to look at because of this object, whatever happened to it."""
        match kind:
            case kinds.DELAY_CLASS:
                # There may be one default class only, and another one takes over its DelayTopics.
                return {class_key(document["metadata"]["name"]), *self.class_keys()}
            case kinds.DELAY_TOPIC:
                named = (document.get("spec") or {}).get("delayClassName")
                return {class_key(named)} if named else self.class_keys()
            case _:
                return set()

    def audit_requests_for(self, kind: Kind, document: Document) -> set[Key]:
        """The audits to look at because of this object, whatever happened to it."""
        match kind:
            case kinds.DELAY_CLASS:
                return {class_key(document["metadata"]["name"])}
            case kinds.DELAY_TOPIC:
                # One that got a class, or lost it, was part of another audit before.
                return {*self.class_requests_for(kind, document), audit_key(document["metadata"]["namespace"], None)}
            case kinds.RECURRING_RECORD:
                return set()
            case _:
                audit = audit_of(document)
                return {audit} if audit is not None else set()

    def recurring_requests_for(self, kind: Kind, document: Document) -> set[Key]:
        """The RecurringRecords to look at because of this object, whatever happened to it."""
        match kind:
            case kinds.RECURRING_RECORD:
                keys = {_key(document)}
            case kinds.DELAY_TOPIC:
                keys = {_key(each) for each in self._with(recurring_term(_key(document)))}
            case _:
                keys = set()
        return {key for key in keys if self.concerns(key)}

    def _keys_of_class(self, name: str) -> set[Key]:
        # Any class may become the default one, or stop being it.
        return {_key(topic) for topic in [*self.of_class(name), *self.of_class(None)]}

    def _keys_of_secret(self, namespace: str, name: str) -> set[Key]:
        keys = set()
        for user in self.with_secret(namespace, name):
            of_class = user["kind"] == kinds.DELAY_CLASS.name
            keys |= self._keys_of_class(user["metadata"]["name"]) if of_class else {_key(user)}
        return keys

    # -- inside

    def _take(self, document: Document, text: bytes) -> bool:
        kind, ref, version = kind_of(document), _ref(document), _version(document)
        terms = frozenset(terms_of(kind, document, self._operator_namespace))
        with self._lock:
            if self._is_no_news(ref, version):
                return False
            known = self._entries[ref.kind].get(ref)
            if_own = known.changed if known is not None and _is_declared_alike(known.text, text, kind) else version
            entry = _Entry(text, version, terms, if_own if self._own.get(ref) == version else version, if_own)
            self._forget(ref)
            self._entries[ref.kind][ref] = entry
            self._note(ref)
            for term in entry.terms:
                self._by_term[term].add(ref)
            return True

    def _with(self, term: Term, wanted: Callable[[Ref], bool] = lambda _: True) -> builtins.list[Document]:
        with self._lock:
            entries = self._sorted(ref for ref in self._by_term.get(term, ()) if wanted(ref))
        return [_parsed(entry) for entry in entries]

    def _sorted(self, refs: Iterable[Ref]) -> builtins.list[_Entry]:
        return [self._entries[ref.kind][ref] for ref in sorted(refs)]

    def _is_no_news(self, ref: Ref, version: int) -> bool:
        known = self._entries[ref.kind].get(ref)
        return (known is not None and version <= known.version) or version <= self._deleted.get(ref, -1)

    def _note(self, ref: Ref) -> None:
        self._revisions[ref.kind] += 1
        self._news[ref.kind].append(ref)

    def _forget(self, ref: Ref) -> None:
        entry = self._entries[ref.kind].pop(ref, None)
        self._note(ref)
        for term in entry.terms if entry is not None else ():
            self._by_term[term].discard(ref)
            if not self._by_term[term]:
                del self._by_term[term]


def _parsed(entry: _Entry) -> Document:
    """Read an object, outside the lock: others wait for that while thousands are read."""
    document: Document = json.loads(entry.text)
    return document


def _is_declared_alike(one: bytes, other: bytes, kind: Kind) -> bool:
    """Tell whether people have declared the same in two states of an object; what they do not write is alike."""
    return kind not in kinds.DECLARED or _declared(one) == _declared(other)


def _declared(text: bytes) -> Document:
    document: Document = json.loads(text)
    document.pop("status", None)
    for name in ("resourceVersion", "finalizers"):
        document["metadata"].pop(name, None)
    return document


def ref_of(document: Document) -> Ref:
    """Return where the object is."""
    return _ref(document)


def _ref(document: Document) -> Ref:
    metadata = document["metadata"]
    return Ref(kind_of(document).plural, metadata.get("namespace", ""), metadata["name"])


def _key(document: Document) -> Key:
    return Key(document["metadata"]["namespace"], document["metadata"]["name"])


def _version(document: Document) -> int:
    """Newer states have greater ones; Kubernetes promises that for one kind of objects."""
    return _number(document["metadata"].get("resourceVersion"))


def _number(version: Any) -> int:
    return int(version) if str(version or "").isdigit() else 0


def _text(document: Document, operator_namespace: str) -> bytes:
    return json.dumps(_trimmed(document, operator_namespace), separators=(",", ":")).encode()


def _trimmed(document: Document, operator_namespace: str) -> Document:
    """Return what is worth keeping: of what a tenant may have written, no more than anybody needs."""
    kind = kind_of(document)
    metadata = {name: value for name, value in document["metadata"].items() if name != "managedFields"}
    if LAST_APPLIED in (metadata.get("annotations") or {}):
        metadata["annotations"] = {n: v for n, v in metadata["annotations"].items() if n != LAST_APPLIED}
    if kind in kinds.DECLARED:
        metadata |= {part: _shortest(metadata[part]) for part in ("labels", "annotations") if part in metadata}
    trimmed = document | {"metadata": metadata}
    if kind == kinds.CONFIG_MAP and metadata.get("namespace") != operator_namespace:
        contents = [text for part in CONTENTS for text in (document.get(part) or {}).values()]
        if sum(map(len, contents)) > LARGEST_CONTENTS:
            trimmed = {field: value for field, value in trimmed.items() if field not in CONTENTS}
    return trimmed


def _shortest(labels: Mapping[str, str] | None) -> dict[str, str]:
    """Return labels or annotations as far as there is room for them; those that the operator reads are short."""
    kept, room = dict[str, str](), LARGEST_LABELS
    for name, value in sorted((labels or {}).items(), key=lambda each: (len(each[0]) + len(each[1]), each)):
        room -= len(name) + len(value)
        if room < 0:
            break
        kept[name] = value
    return kept
