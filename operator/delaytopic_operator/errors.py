"""Every error the operator raises: whose fault it is, and what happens next.

OperatorError
+-- ConfigurationError      the platform team's: the operator does not start, one line says what to change
+-- Unavailable             the other side's, passing: the same reconciliation is tried again, later each time
|   +-- ApiServerUnavailable
|   +-- KafkaUnavailable
|   +-- RedisUnavailable
+-- Conflict                nobody's: somebody else was faster; the reconciliation starts over from what is true now
+-- NotAllowed              the platform team's: a right or a credential is missing; tried again, and said in the status
|   +-- ApiServerForbidden
|   +-- KafkaNotAuthorized
|   +-- KafkaNotAuthenticated
|   +-- RedisNotAuthenticated
|   +-- SecretMissing
|   +-- ConnectionUnknown
+-- Rejected                the author's: refused for good; the message says what to change
|   +-- ObjectRejected
|   +-- TopicRejected
+-- ObjectForeign           the author's: a name is taken by another DelayTopic's object, which is not touched
+-- RecordUnreadable        the platform team's: what is written down about a route is not understood, and not touched
+-- NamespaceTerminating    nobody's: nothing can be made there any more
+-- NotLeading              nobody's: another operator leads, and this one writes nothing
"""

from __future__ import annotations


class OperatorError(Exception):
    """Root of the tree; the message is a sentence for the status of the DelayTopic that is concerned."""

    reason = "Error"
    """A word for programs: the reason of the condition that this becomes."""


class ConfigurationError(OperatorError):
    """The operator cannot run as configured; the message names the setting and what to change."""

    reason = "Misconfigured"


class Unavailable(OperatorError):
    """The other side did not answer, or not in time; every action may be repeated."""

    reason = "Unavailable"


class ApiServerUnavailable(Unavailable):
    """The Kubernetes API server is away, overloaded, or asks to come back later (`retry_after_s`)."""

    reason = "ApiServerUnavailable"

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class KafkaUnavailable(Unavailable):
    """Kafka cannot be reached, or did not answer in time."""

    reason = "KafkaUnreachable"


class RedisUnavailable(Unavailable):
    """Redis cannot be reached."""

    reason = "RedisUnreachable"


class Conflict(OperatorError):
    """The object was changed, or made, or another field manager holds a field."""

    reason = "Conflict"


class NotAllowed(OperatorError):
    """A right or a credential is missing; nobody's data is touched until there is one."""

    reason = "AuthorizationFailed"


class ApiServerForbidden(NotAllowed):
    """The operator's ServiceAccount may not do this; the message names verb and resource."""

    reason = "Forbidden"


class KafkaNotAuthorized(NotAllowed):
    """The operator's Kafka user may not do this to this topic or group; the message names both."""


class KafkaNotAuthenticated(NotAllowed):
    """Kafka does not accept the credentials."""

    reason = "AuthenticationFailed"


class RedisNotAuthenticated(NotAllowed):
    """Redis does not accept the credentials."""

    reason = "AuthenticationFailed"


class SecretMissing(NotAllowed):
    """A Secret, or a key in it, is not there, or does not hold what it should; the message names both."""

    reason = "SecretMissing"


class ConnectionUnknown(NotAllowed):
    """It is not known how to reach the Kafka of a route; the message names what is gone."""

    reason = "ConnectionUnknown"


class Rejected(OperatorError):
    """The other side understood, and says no: trying again without a change is of no use."""

    reason = "Rejected"


class ObjectRejected(Rejected):
    """The API server refuses an object: by its schema, a policy or a quota."""

    reason = "ObjectRejected"


class TopicRejected(Rejected):
    """Kafka refuses a topic or a setting of it; the message names them."""

    reason = "TopicRejected"


class OtherOwner(Rejected):
    """Relays of another Kubernetes cluster use the topics and offsets; they have to go first."""

    reason = "OtherOwner"


class ObjectForeign(OperatorError):
    """An object of the name that is needed belongs to somebody else; the message names it."""

    reason = "ObjectForeign"


class RecordUnreadable(OperatorError):
    """The record of a route is a newer operator's, or damaged; nothing is written until somebody has looked."""

    reason = "RecordUnreadable"


class NamespaceTerminating(OperatorError):
    """The namespace is being deleted."""

    reason = "NamespaceTerminating"


class NotLeading(OperatorError):
    """The operator holds no Lease, or one about to end: what was to be written is left to the one that leads."""

    reason = "NotLeading"
