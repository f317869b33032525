# Builds Debian packages of TNet, and an image of its programs alone: `docker build -t tnet .`, then
# `docker run --rm -v "$PWD:/data" tnet tnet-train clicks.yaml`. docs/install.md says more.
FROM debian:12 AS build
RUN apt-get update && apt-get install -y --no-install-recommends git make ca-certificates && rm -rf /var/lib/apt/lists/*
WORKDIR /tnet
COPY . .
RUN make packages

FROM debian:12-slim
COPY --from=build /tnet/build/packages/tnet_*.deb /tnet/build/packages/libtnet1_*.deb /packages/
RUN apt-get update && apt-get install -y /packages/*.deb && rm -rf /packages /var/lib/apt/lists/* && useradd --create-home tnet
USER tnet
WORKDIR /data
CMD ["tnet-train", "--help"]
