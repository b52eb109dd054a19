//! Scratch.
use anabranch_engine::{Options, Outcome, Session};
use anabranch_sql::output::printer;
fn main() {
    let path = std::env::args().nth(1).expect("a file");
    let text = std::fs::read_to_string(path).expect("readable");
    let mut session = Session::new(Options::default()).expect("a session");
    for sql in text.split("\n").filter(|l| !l.trim().is_empty() && !l.starts_with("--")) {
        println!("> {sql}");
        match session.execute(sql) {
            Ok(outs) => for out in outs { match out {
                Outcome::Rows(rows) => {
                    let mut lines = vec![];
                    for b in &rows.batches { for row in 0..b.num_rows() {
                        let mut line = vec![];
                        for c in b.columns() {
                            let mut s = String::new();
                            if arrow::array::Array::is_null(c.as_ref(), row) { s.push_str("NULL") } else { printer(c)(row, &mut s); }
                            line.push(s);
                        }
                        lines.push(line.join("|"));
                    } }
                    for l in lines { println!("{l}"); }
                }
                Outcome::Done { .. } => {}
                _ => println!("other"),
            } },
            Err(e) => println!("ERROR {} {}{}{}", e.sqlstate(), e.message,
                e.detail.map(|d| format!("\nDETAIL {d}")).unwrap_or_default(), e.hint.map(|d| format!("\nHINT {d}")).unwrap_or_default()),
        }
    }
}
