//! Programs made in Rust are the programs of text.

use anabranch_datalog::build::{atom, count, negated, number, text, variable, wildcard};
use anabranch_datalog::{Program, Value};

use crate::host::session;

#[test]
fn a_program_made_in_rust_runs() {
    let program = Program::new()
        .declare("edge", &[("a", "symbol"), ("b", "symbol")])
        .declare("leaf", &[("a", "symbol")])
        .declare("degree", &[("a", "symbol"), ("n", "number")])
        .input("edge")
        .fact("edge", [text("a"), text("b")])
        .rule(
            atom("leaf", [variable("x")]),
            [atom("edge", [wildcard(), variable("x")]).into(), negated(atom("edge", [variable("x"), wildcard()]))],
        )
        .rule(
            atom("degree", [variable("x"), variable("n")]),
            [
                atom("edge", [variable("x"), wildcard()]).into(),
                variable("n").equals(count([atom("edge", [variable("x"), wildcard()]).into()])),
                variable("n").plus(number(1)).greater(number(1)),
            ],
        )
        .output("leaf")
        .output("degree");
    let mut session = session();
    let installed = program.install(&mut session).unwrap();
    session.execute("INSERT INTO edge VALUES ('a', 'c')").unwrap();
    assert_eq!(installed.rows(&mut session, "leaf").unwrap(), [[Value::from("b")], [Value::from("c")]]);
    assert_eq!(installed.rows(&mut session, "degree").unwrap(), [[Value::from("a"), Value::from(2)]]);
}

#[test]
fn rules_of_text_can_be_added() {
    let program = Program::new().declare("a", &[("x", "number")]).and("a(1). a(x + 1) :- a(x), x < 3.").unwrap();
    let error = program.clone().and("a(x) :- b(x).").unwrap().check().unwrap_err();
    assert_eq!(error.message, "relation b is not declared");
    program.check().unwrap();
}
