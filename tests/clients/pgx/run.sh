# pgx: fetched and built once, run; an argument names a part.
[ -f go.mod ] || go mod init anabranch/clients >/dev/null 2>&1
export GOFLAGS=-mod=mod
if ! go get github.com/jackc/pgx/v5@v5.7.6 >go.log 2>&1; then
    echo "Go cannot fetch pgx"
    exit 77
fi
go run . "$@"
