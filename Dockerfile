# The image: one static binary on a base with a shell. Data lies in /var/lib/sluice.
FROM golang:1.27 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o /sluice ./cmd/sluice && mkdir -p /var/lib/sluice

FROM busybox:1.37
COPY --from=build /sluice /usr/bin/sluice
COPY --from=build --chown=1000:1000 /var/lib/sluice /var/lib/sluice
USER 1000:1000
EXPOSE 9092 9644
VOLUME /var/lib/sluice
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/bin/sluice"]
CMD ["serve", "--data", "/var/lib/sluice", "--listen", "0.0.0.0:9092", "--admin", "0.0.0.0:9644"]
