//! The 22 queries with the specification's validation parameters, as bodies of views.
//!
//! Texts are those of `tpchgen::q_and_a`. Ours: the parameters; LIMIT, which the texts leave out,
//! together with an order that leaves no ties at the limit; query 15's view as a common table
//! expression; and `interval '90' day (3)` without the precision, which PostgreSQL does not know
//! either.

/// The text of query `number`, ready to follow `CREATE MATERIALIZED VIEW .. AS`.
///
/// # Panics
/// If `number` is not in `1..=22`.
pub fn query(number: usize, scale: f64) -> String {
    let text = tpchgen::q_and_a::queries::query(number as i32)
        .unwrap_or_else(|| panic!("TPC-H has queries 1 to 22, not {number}"));
    let text = fill(text, &parameters(number, scale));
    let text = match number {
        1 => text.replace(" day (3)", " day"),
        15 => revenue_as_cte(&text),
        _ => text,
    };
    let text = text.trim().trim_end_matches(';').to_string();
    match limit(number) {
        Some(limit) => text + limit,
        None => text,
    }
}

/// The names of the tables that a query reads.
pub fn tables(number: usize) -> Vec<&'static super::Table> {
    let text = query(number, 1.0);
    let is_word = |name: &str| text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name);
    super::TABLES.iter().filter(|table| is_word(table.name)).collect()
}

/// Parameters `:1`, `:2`, .. by the specification's section on query validation.
fn parameters(number: usize, scale: f64) -> Vec<String> {
    let fraction = format!("{}", 0.0001 / scale);
    let given: &[&str] = match number {
        1 => &["90"],
        2 => &["15", "BRASS", "EUROPE"],
        3 => &["BUILDING", "1995-03-15"],
        4 => &["1993-07-01"],
        5 => &["ASIA", "1994-01-01"],
        6 => &["1994-01-01", "0.06", "24"],
        7 => &["FRANCE", "GERMANY"],
        8 => &["BRAZIL", "AMERICA", "ECONOMY ANODIZED STEEL"],
        9 => &["green"],
        10 => &["1993-10-01"],
        11 => &["GERMANY", &fraction],
        12 => &["MAIL", "SHIP", "1994-01-01"],
        13 => &["special", "requests"],
        14 => &["1995-09-01"],
        15 => &["1996-01-01"],
        16 => &["Brand#45", "MEDIUM POLISHED", "49", "14", "23", "45", "19", "3", "36", "9"],
        17 => &["Brand#23", "MED BOX"],
        18 => &["300"],
        19 => &["Brand#12", "Brand#23", "Brand#34", "1", "10", "20"],
        20 => &["forest", "1994-01-01", "CANADA"],
        21 => &["SAUDI ARABIA"],
        22 => &["13", "31", "23", "29", "30", "18", "17"],
        _ => panic!("TPC-H has queries 1 to 22, not {number}"),
    };
    given.iter().map(ToString::to_string).collect()
}

/// The last parameter first, so that `:1` does not hit the beginning of `:10`.
fn fill(text: &str, parameters: &[String]) -> String {
    let mut filled = text.to_string();
    for (index, parameter) in parameters.iter().enumerate().rev() {
        filled = filled.replace(&format!(":{}", index + 1), parameter);
    }
    filled
}

fn limit(number: usize) -> Option<&'static str> {
    match number {
        2 => Some("\nlimit 100"),
        3 => Some(",\n\tl_orderkey\nlimit 10"),
        10 => Some(",\n\tc_custkey\nlimit 20"),
        18 => Some(",\n\to_orderkey\nlimit 100"),
        21 => Some("\nlimit 100"),
        _ => None,
    }
}

fn revenue_as_cte(text: &str) -> String {
    let text = text.replace("revenue:s", "revenue");
    let mut statements = text.split(';');
    let view = statements.next().expect("query 15 begins with a view");
    let select = statements.next().expect("query 15 goes on with a select");
    let (head, body) = view.split_once(" as").expect("a view has a body");
    format!("{} as ({body}\n)\n{}", head.trim().replace("create view", "with"), select.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_query_keeps_a_placeholder() {
        for number in 1..=22 {
            let text = query(number, 0.01);
            assert!(!text.contains(':') && !text.contains(';'), "query {number}: {text}");
        }
    }

    #[test]
    fn tables_are_those_of_the_from_clauses() {
        let names = |number| tables(number).iter().map(|table| table.name).collect::<Vec<_>>();
        assert_eq!(names(1), ["lineitem"]);
        assert_eq!(names(13), ["customer", "orders"]);
        assert_eq!(names(2), ["region", "nation", "supplier", "part", "partsupp"]);
    }
}
