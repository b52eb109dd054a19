//! The examples about time, on the data of the repository.

#[path = "../../examples/temporal/questions/mod.rs"]
mod about_time;

use std::path::PathBuf;

#[test]
fn the_questions_about_time_are_answered() {
    let data = PathBuf::from("../../examples/data");
    let mut answers = String::new();
    for (name, ask) in about_time::ALL {
        answers.push_str(&format!("{name}\n"));
        ask(&data).unwrap_or_else(|error| panic!("{name}: {}", error.render(""))).iter().for_each(|line| {
            answers.push_str(&format!("    {line}\n"));
        });
    }
    let expected = PathBuf::from("tests/it/questions.txt");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&expected, &answers).expect("the answers are written");
    }
    assert_eq!(answers, std::fs::read_to_string(&expected).expect("the answers are there"));
}
