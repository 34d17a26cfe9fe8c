# The `riskscreen` command. In the checkout: docker build -f docker/command.Dockerfile -t riskscreen .
# Then: docker run --rm riskscreen screen ADDRESS -n eth
FROM debian:bookworm-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev make cmake pkg-config lua5.4 liblua5.4-dev libcurl4-openssl-dev libmicrohttpd-dev
COPY . /source
RUN cmake -S /source -B /build && cmake --build /build -j2 && cmake --install /build --prefix /usr/local

FROM debian:bookworm-slim
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates lua5.4 lua-argparse lua-dbi-sqlite3 lua-zlib libcurl4 libmicrohttpd12 && rm -rf /var/lib/apt/lists/*
COPY --from=build /usr/local /usr/local
USER nobody
ENTRYPOINT ["riskscreen"]
