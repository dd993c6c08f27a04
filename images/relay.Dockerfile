# The relay: delivers the records of one DelayTopic.
# Built by `python -m images.build`, which makes the context.
ARG BASE=python:3.11-slim

FROM ${BASE} AS build
COPY install.py /build/
COPY wheels/tools /build/wheels/tools
RUN ["python3", "/build/install.py", "tools"]
COPY wheels/dependencies /build/wheels/dependencies
RUN ["python3", "/build/install.py", "dependencies"]
COPY pyproject.toml /build/
COPY wheels/project /build/wheels/project
RUN ["python3", "/build/install.py", "project"]

FROM ${BASE}
COPY --from=build /layers/dependencies/ /
COPY --from=build /layers/project/ /
ENV PATH=/opt/delaytopic/bin:${PATH} \
    HOME=/tmp \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["delaytopic-relay"]
ARG VERSION=""
ARG REVISION=""
ARG SOURCE="https://delaytopic.dev"
LABEL org.opencontainers.image.title="delaytopic relay" \
      org.opencontainers.image.description="Delivers Kafka records at their own time" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.source="${SOURCE}" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
