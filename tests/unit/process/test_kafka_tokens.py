"""The client library's words on tokens that it did not get, as causes that somebody can look at."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import KafkaError

from delaytopic_process import kafka_tokens
from delaytopic_process.kafka_tokens import TokenFailure, TokenProblem, token_failure, with_authorities

CERTIFICATES = "SSL_CERT_FILE"
OIDC = {"sasl.oauthbearer.method": "oidc"}


def failed(said: str) -> TokenFailure | None:
    return token_failure(KafkaError(KafkaError._AUTHENTICATION, f"Failed to acquire SASL OAUTHBEARER token: {said}"))


@pytest.mark.parametrize(
    ("said", "failure"),
    [
        (
            '{"error": "invalid_client", "error_description": "Invalid client secret"}',
            TokenFailure(TokenProblem.CLIENT, "invalid_client: Invalid client secret", passes=False),
        ),
        (
            '{"errorCode": "E0000004", "errorSummary": "Authentication failed"}',
            TokenFailure(TokenProblem.CLIENT, "E0000004: Authentication failed", passes=False),
        ),
        ('{"error": "invalid_scope"}', TokenFailure(TokenProblem.SCOPE, "invalid_scope", passes=False)),
        (
            '{"error": "temporarily_unavailable"}',
            TokenFailure(TokenProblem.ENDPOINT, "temporarily_unavailable", passes=True),
        ),
        (
            "SSL certificate problem: unable to get local issuer certificate",
            TokenFailure(
                TokenProblem.AUTHORITY, "SSL certificate problem: unable to get local issuer certificate", passes=False
            ),
        ),
        (
            "SSL: no alternative certificate subject name matches target host name 'login.test'",
            TokenFailure(
                TokenProblem.AUTHORITY,
                "SSL: no alternative certificate subject name matches target host name 'login.test'",
                passes=False,
            ),
        ),
        (
            "Failed to decode JWT payload: The token is invalid with less than 2 delimiters",
            TokenFailure(
                TokenProblem.ENDPOINT,
                "it gives no JWT with sub and exp: Failed to decode JWT payload: The token is invalid with less than 2 "
                "delimiters",
                passes=False,
            ),
        ),
        (
            "Could not resolve host: login.test",
            TokenFailure(TokenProblem.ENDPOINT, "Could not resolve host: login.test", passes=True),
        ),
    ],
)
def test_an_issuers_refusal_names_its_cause_and_whether_it_passes(said: str, failure: TokenFailure) -> None:
    assert failed(said) == failure


@pytest.mark.parametrize("said", ["<html>busy</html>", '{"secret": "of a neighbour"}', "a page\nof text", '["error"]'])
def test_an_answer_that_is_none_of_oauths_is_not_shown(said: str) -> None:
    failure = failed(said)

    assert failure is not None
    assert failure.passes
    assert said not in failure.reason


def test_a_reason_is_one_line_of_bounded_length() -> None:
    failure = failed('{"error": "invalid_client", "error_description": "a\\nb\\u001b[31m' + "x" * 300 + '"}')

    assert failure is not None
    assert failure.reason.startswith("invalid_client: a b [31mx")
    assert len(failure.reason) < len("invalid_client") + 200
    assert failure.reason.isprintable()


def test_other_errors_are_not_of_tokens() -> None:
    refused = KafkaError(KafkaError._AUTHENTICATION, 'SASL authentication error: {"status":"invalid_token"}')

    assert token_failure(refused) is None
    assert token_failure(KafkaError(KafkaError._TRANSPORT, "Failed to acquire SASL OAUTHBEARER token: x")) is None


def test_a_client_of_tokens_trusts_whom_the_environment_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    authorities = tmp_path / "bundle.pem"
    authorities.touch()
    monkeypatch.setenv(CERTIFICATES, str(authorities))

    assert with_authorities(OIDC) == {**OIDC, "https.ca.location": str(authorities)}


def test_a_client_of_tokens_trusts_whom_the_system_trusts_by_a_file_and_never_by_a_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bundle = tmp_path / "bundle.pem"
    bundle.touch()
    monkeypatch.setenv(CERTIFICATES, str(tmp_path / "missing.pem"))
    monkeypatch.setattr(kafka_tokens, "BUNDLES", (str(tmp_path / "none.pem"), str(tmp_path), str(bundle)))

    assert with_authorities(OIDC) == {**OIDC, "https.ca.location": str(bundle)}


def test_a_system_without_authorities_leaves_the_choice_to_the_library(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(CERTIFICATES, str(tmp_path / "missing.pem"))
    monkeypatch.setattr(kafka_tokens, "BUNDLES", ())

    assert with_authorities(OIDC) == OIDC


@pytest.mark.parametrize(
    "settings", [{}, {**OIDC, "https.ca.location": "/ca.pem"}, {**OIDC, "https.ca.pem": "PEM"}], ids=str
)
def test_who_names_an_authority_or_gets_no_tokens_is_left_alone(settings: dict[str, str]) -> None:
    assert with_authorities(settings) == settings
