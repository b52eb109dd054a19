// pgx against the server that the environment names.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func same[T comparable](wanted, is T) {
	if wanted != is {
		panic(fmt.Sprintf("wanted %v, but it is %v", wanted, is))
	}
}

func code(err error) string {
	var told *pgconn.PgError
	if errors.As(err, &told) {
		return told.Code
	}
	return fmt.Sprint(err)
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	connection, err := pgx.Connect(ctx, "")
	must(err)
	defer connection.Close(ctx)
	exec := func(sql string, args ...any) {
		_, err := connection.Exec(ctx, sql, args...)
		must(err)
	}
	if len(os.Args) > 1 && os.Args[1] == "copy" {
		exec("DROP TABLE IF EXISTS pgx_c CASCADE")
		exec("CREATE TABLE pgx_c (k int PRIMARY KEY, s text)")
		copied, err := connection.CopyFrom(ctx, pgx.Identifier{"pgx_c"}, []string{"k", "s"},
			pgx.CopyFromRows([][]any{{int32(50), "x"}, {int32(51), nil}}))
		must(err)
		same(int64(2), copied)
		fmt.Println("ok")
		os.Exit(0)
	}
	exec("DROP TABLE IF EXISTS pgx_t CASCADE")
	exec("CREATE TABLE pgx_t (k int PRIMARY KEY, s text, n numeric(10,2), d date, a int[])")
	day := time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC)
	exec("INSERT INTO pgx_t VALUES ($1, $2, $3, $4, $5)", 1, "é", "1.50", day, []int32{1, 2})

	var s string
	var n pgtype.Numeric
	var d time.Time
	var a []int32
	must(connection.QueryRow(ctx, "SELECT s, n, d, a FROM pgx_t WHERE k = $1", 1).Scan(&s, &n, &d, &a))
	value, err := n.Float64Value()
	must(err)
	same("é", s)
	same(1.5, value.Float64)
	same(day, d)
	same(2, len(a))

	transaction, err := connection.Begin(ctx)
	must(err)
	_, err = transaction.Exec(ctx, "INSERT INTO pgx_t (k) VALUES (2)")
	must(err)
	must(transaction.Rollback(ctx))
	_, err = connection.Exec(ctx, "INSERT INTO pgx_t (k) VALUES (1)")
	same("23505", code(err))

	batch := &pgx.Batch{}
	for k := 10; k < 20; k++ {
		batch.Queue("INSERT INTO pgx_t (k, s) VALUES ($1, $2)", k, fmt.Sprint(k))
	}
	must(connection.SendBatch(ctx, batch).Close())
	var count int
	must(connection.QueryRow(ctx, "SELECT count(*) FROM pgx_t").Scan(&count))
	same(11, count)

	// A context that ends cancels the statement, and with it the connection.
	short, stop := context.WithTimeout(ctx, 300*time.Millisecond)
	defer stop()
	other, err := pgx.Connect(ctx, "")
	must(err)
	rows, err := other.Query(short, "SUBSCRIBE pgx_t")
	must(err)
	seen := 0
	for rows.Next() {
		seen++
	}
	if rows.Err() == nil {
		panic("a subscription ended by itself")
	}
	same(11, seen)
	fmt.Println("ok")
	os.Exit(0)
}
