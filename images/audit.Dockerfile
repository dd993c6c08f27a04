# The audit: proves with Spark that every record arrived, once, on time. Its Java is a wheel, too.
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
# Of Kafka and S3, which Spark's wheel leaves out: where Spark finds them without being told.
COPY wheels/jars/ /opt/delaytopic/lib/python3.11/site-packages/pyspark/jars/
COPY --from=build /layers/project/ /
ENV PATH=/opt/delaytopic/bin:${PATH} \
    HOME=/tmp \
    SPARK_LOCAL_DIRS=/tmp \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1
USER 65532:65532
WORKDIR /tmp
ENTRYPOINT ["delaytopic"]
ARG VERSION=""
ARG REVISION=""
ARG SOURCE="https://delaytopic.dev"
LABEL org.opencontainers.image.title="delaytopic audit" \
      org.opencontainers.image.description="Proves from the topics that every delayed record arrived, once, on time" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.source="${SOURCE}" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
