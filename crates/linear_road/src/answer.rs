//! What the system says: notifications and answers, and their text forms.

use std::fmt;
use std::io::{self, BufRead};
use std::str::FromStr;

/// One output. Times are in seconds; `Emit` is added where it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TollAnswer {
    /// A vehicle has entered a segment.
    Toll {
        /// Vehicle.
        vid: u32,
        /// Of the report.
        time: u32,
        /// Floor of the mean speed in miles per hour; -1 for none.
        speed: i32,
        /// Cents.
        toll: u32,
    },
    /// A vehicle has entered a segment in the zone of an accident.
    Accident {
        /// Of the report.
        time: u32,
        /// Vehicle.
        vid: u32,
        /// Where the accident is.
        segment: u8,
        /// Expressway of the vehicle.
        xway: u16,
        /// Direction of the vehicle.
        direction: u8,
    },
    /// The balance of an account.
    Balance {
        /// Of the query.
        time: u32,
        /// Number of the query.
        query: u32,
        /// Of the last crossing that counts.
        result_time: u32,
        /// Cents.
        balance: u32,
    },
    /// The toll that a vehicle spent on a day on an expressway.
    Expenditure {
        /// Of the query.
        time: u32,
        /// Number of the query.
        query: u32,
        /// Cents.
        balance: u32,
    },
}

/// Which columns outputs have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum AnswerForm {
    /// Those of the validator of 2004.
    #[default]
    Official,
    /// Those of the retailer's test of 2016.
    Retail,
}

impl FromStr for AnswerForm {
    type Err = String;

    fn from_str(text: &str) -> Result<AnswerForm, String> {
        match text {
            "official" => Ok(AnswerForm::Official),
            "retail" => Ok(AnswerForm::Retail),
            other => Err(format!("outputs are of form official or retail, not {other}")),
        }
    }
}

impl TollAnswer {
    /// Seconds within which it is due.
    pub fn limit_seconds(&self) -> u32 {
        match self {
            TollAnswer::Expenditure { .. } => 10,
            _ => 5,
        }
    }

    /// When the row that it answers was sent.
    pub fn time(&self) -> u32 {
        match *self {
            TollAnswer::Toll { time, .. }
            | TollAnswer::Accident { time, .. }
            | TollAnswer::Balance { time, .. }
            | TollAnswer::Expenditure { time, .. } => time,
        }
    }

    /// The text form, delivered at second `emit`.
    pub fn line(&self, form: AnswerForm, emit: impl fmt::Display) -> String {
        match (*self, form) {
            (TollAnswer::Toll { vid, time, speed, toll }, _) => format!("0,{vid},{time},{emit},{speed},{toll}"),
            (TollAnswer::Accident { time, vid, segment, .. }, AnswerForm::Official) => {
                format!("1,{time},{emit},{vid},{segment}")
            }
            (TollAnswer::Accident { time, vid, segment, xway, direction }, AnswerForm::Retail) => {
                format!("1,{time},{emit},{xway},{segment},{direction},{vid}")
            }
            (TollAnswer::Balance { time, query, result_time, balance }, AnswerForm::Official) => {
                format!("2,{time},{emit},{query},{result_time},{balance}")
            }
            (TollAnswer::Balance { time, query, result_time, balance }, AnswerForm::Retail) => {
                format!("2,{time},{emit},{result_time},{query},{balance}")
            }
            (TollAnswer::Expenditure { time, query, balance }, _) => format!("3,{time},{emit},{query},{balance}"),
        }
    }

    /// Reads the text form: the answer, and when it was delivered. Expressway and direction of an
    /// official accident are 0.
    ///
    /// # Errors
    /// What is wrong, without the place.
    pub fn parse(line: &str, form: AnswerForm) -> Result<(TollAnswer, f64), String> {
        let fields: Vec<f64> = line
            .split(',')
            .map(|field| field.trim().parse().map_err(|_| format!("'{}' is no number", field.trim())))
            .collect::<Result<_, _>>()?;
        let whole = |at: usize| fields[at] as u32;
        let answer = match (fields.as_slice(), form) {
            ([0.0, _, _, emit, speed, _], _) => {
                (TollAnswer::Toll { vid: whole(1), time: whole(2), speed: *speed as i32, toll: whole(5) }, *emit)
            }
            ([1.0, _, emit, _, _], AnswerForm::Official) => (
                TollAnswer::Accident { time: whole(1), vid: whole(3), segment: whole(4) as u8, xway: 0, direction: 0 },
                *emit,
            ),
            ([1.0, _, emit, _, _, _, _], AnswerForm::Retail) => {
                let (xway, direction) = (whole(3) as u16, whole(5) as u8);
                (
                    TollAnswer::Accident { time: whole(1), vid: whole(6), segment: whole(4) as u8, xway, direction },
                    *emit,
                )
            }
            ([2.0, _, emit, _, _, _], form) => {
                let (query, result_time) = if form == AnswerForm::Official { (3, 4) } else { (4, 3) };
                let (query, result_time) = (whole(query), whole(result_time));
                (TollAnswer::Balance { time: whole(1), query, result_time, balance: whole(5) }, *emit)
            }
            ([3.0, _, emit, _, _], _) => {
                (TollAnswer::Expenditure { time: whole(1), query: whole(3), balance: whole(4) }, *emit)
            }
            _ => return Err(format!("no output begins with {} and has {} fields", fields[0], fields.len())),
        };
        Ok(answer)
    }
}

/// Reads a file of outputs, one a line.
///
/// # Errors
/// `Invalid data` names the line; other errors are the file's.
pub fn read(input: impl BufRead, form: AnswerForm) -> io::Result<Vec<(TollAnswer, f64)>> {
    let mut answers = Vec::new();
    for (at, line) in input.lines().enumerate() {
        let line = line?;
        if !line.trim().is_empty() {
            answers.push(
                TollAnswer::parse(&line, form).map_err(|reason| {
                    io::Error::new(io::ErrorKind::InvalidData, format!("line {}: {reason}", at + 1))
                })?,
            );
        }
    }
    Ok(answers)
}
