//! Plans of the queries in `tests/plans/*.sql`, beside them in files of the same name.

use std::path::Path;

use anabranch_sql::split;

use crate::support::{TestCatalog, golden};

/// Tables that the queries use.
const TABLES: &str = "
create table t (a bigint primary key, b integer, c text, d numeric(10,2), e date, f double precision, g boolean);
create table u (a bigint not null, b integer, c text, k bigint);
create table events (id bigint primary key, user_id bigint not null, kind text not null, at timestamp not null, amount numeric(12,2),
  tags text[]);
create view v as select a, b * 2 as twice, c from t where b > 0;
create view vv as select twice, count(*) as n from v group by twice;
create materialized view m as select c, sum(d) as total from t group by c;
";

#[test]
fn plans_are_as_on_file() {
    let catalog = TestCatalog::of(TABLES);
    let folder = Path::new("tests/plans");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".sql"))
        .collect();
    files.sort();
    assert!(!files.is_empty());
    for file in files {
        let text = std::fs::read_to_string(folder.join(&file)).unwrap();
        let mut out = String::new();
        for range in split(&text).statements {
            let query = &text[range];
            out.push_str(&format!("{query};\n{}\n", catalog.show(query)));
        }
        golden(&file.replace(".sql", ".txt"), &out);
    }
}
