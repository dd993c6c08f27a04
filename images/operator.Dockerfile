# The operator: turns DelayTopics into topics and relays.
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
# MALLOC_*: each thread would have an arena of its own, which keeps what large answers took; large ones are given back.
ENV PATH=/opt/delaytopic/bin:${PATH} \
    HOME=/tmp \
    MALLOC_ARENA_MAX=2 \
    MALLOC_MMAP_THRESHOLD_=262144 \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1
USER 65532:65532
EXPOSE 8081
ENTRYPOINT ["delaytopic-operator"]
ARG VERSION=""
ARG REVISION=""
ARG SOURCE="https://delaytopic.dev"
LABEL org.opencontainers.image.title="delaytopic operator" \
      org.opencontainers.image.description="Turns DelayTopics into Kafka topics and relays" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.source="${SOURCE}" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
