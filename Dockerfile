# The connector's image: Flyte calls it over gRPC for each Ray task. Users' images are their own, with this package in them.
FROM python:3.12-slim

# flytekit's default log format takes quadratic time for long words, on the connector's event loop.
ENV FLYTE_SDK_LOGGING_FORMAT=json \
    FLYTE_SDK_RICH_TRACEBACKS=0 \
    PYTHONUNBUFFERED=1

WORKDIR /build
COPY setup.py pyproject.toml README.md LICENSE requirements.lock ./
COPY flytekitplugins flytekitplugins
RUN pip install --no-cache-dir --constraint requirements.lock ".[connector]"

RUN useradd --uid 1000 --create-home flyte
USER 1000
WORKDIR /home/flyte
EXPOSE 8000 9090
CMD ["pyflyte", "serve", "connector", "--port", "8000", "--prometheus_port", "9090"]
