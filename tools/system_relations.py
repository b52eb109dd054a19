#!/usr/bin/env python3
"""Writes the columns of PostgreSQL's system relations, and the rows of those that never change.

Usage: tools/system_relations.py CONNECTION FOLDER

The folder is crates/engine/src/catalog/system. `relations.txt` has a line `schema.name oid` for
each relation and below it a line ` column type` for each column, with `!` where NULL cannot be.
`types.txt` has a line for each type: the values of TYPE_COLUMNS, separated by tabs.
"""
import sys

import psycopg

TYPE_COLUMNS = ("oid typname typlen typbyval typtype typcategory typispreferred typdelim typelem typarray "
                "typcollation").split()
TYPES = """bool bytea char name int8 int2 int2vector int4 text oid oidvector json float4 float8 unknown bpchar varchar
    date time timestamp timestamptz interval numeric uuid jsonb record regclass regtype regproc regnamespace""".split()
SCHEMAS = ("pg_catalog", "information_schema")
# Not what clients ask for: statistics of one subsystem or another, and large objects.
LEFT_OUT = ("pg_toast", "pg_statistic_ext_data", "pg_largeobject", "pg_stat_progress", "pg_statio", "pg_stat_xact",
            "pg_replication_origin", "pg_shmem", "pg_backend_memory", "pg_hba", "pg_ident", "pg_stat_slru",
            "pg_stat_wal", "pg_stat_gssapi", "pg_stat_subscription", "pg_stat_recovery", "pg_stat_archiver",
            "pg_stat_replication", "_pg_", "pg_parameter_acl", "pg_seclabel", "pg_shseclabel", "pg_init_privs",
            "pg_transform", "pg_file_settings")


def main() -> None:
    connection = psycopg.connect(sys.argv[1], autocommit=True)
    relations = connection.execute(
        """SELECT n.nspname, c.relname, c.oid, a.attname, t.typname, a.attnotnull
           FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid
           JOIN pg_type t ON t.oid = a.atttypid
           WHERE n.nspname = ANY(%s) AND c.relkind IN ('r', 'v') AND a.attnum > 0
           ORDER BY n.nspname DESC, c.relname, a.attnum""", (list(SCHEMAS),)).fetchall()
    with open(sys.argv[2] + "/relations.txt", "w", encoding="utf-8") as out:
        last = None
        for schema, name, oid, column, of, not_null in relations:
            # (Clients join this one with pg_proc's oid; a regproc is a text here.)
            of = "oid" if column == "aggfnoid" else of
            if name.startswith(LEFT_OUT):
                continue
            if (schema, name) != last:
                out.write(f"{schema}.{name} {oid}\n")
                last = (schema, name)
            out.write(f"  {column} {of}{'!' if not_null else ''}\n")
    rows = connection.execute(
        f"""SELECT {', '.join(TYPE_COLUMNS)} FROM pg_type WHERE typname = ANY(%s)
            OR oid IN (SELECT typarray FROM pg_type WHERE typname = ANY(%s)) ORDER BY oid""", (TYPES, TYPES)).fetchall()
    with open(sys.argv[2] + "/types.txt", "w", encoding="utf-8") as out:
        for row in rows:
            out.write("\t".join({True: "t", False: "f"}.get(v, v) if isinstance(v, bool) else str(v) for v in row) + "\n")


if __name__ == "__main__":
    main()
