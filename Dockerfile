# A worker of role views: docker build -t shoal . ; the policy and its keys are mounted, never built in.
FROM python:3.12-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE CHANGELOG.md ./
COPY src src
RUN python -m venv /opt/shoal && /opt/shoal/bin/pip install --no-cache-dir ".[kafka,registry]"

FROM python:3.12-slim
COPY --from=build /opt/shoal /opt/shoal
# kernels are compiled once, into a folder this user may write to: keep it on a volume
RUN useradd --system --uid 10001 --create-home shoal && mkdir /cache && chown shoal /cache
ENV PATH=/opt/shoal/bin:$PATH XDG_CACHE_HOME=/cache PYTHONUNBUFFERED=1
USER 10001
WORKDIR /policy
VOLUME ["/cache"]
EXPOSE 9100
ENTRYPOINT ["shoal"]
CMD ["serve", "run", "policy.yaml", "--metrics", "0.0.0.0:9100", "--log", "json"]
