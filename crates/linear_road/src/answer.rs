//! What the system says: notifications and answers, and their text forms.

use std::fmt;
use std::io::{self, BufRead};
use std::str::FromStr;

/// One output. Times are in seconds; `Emit` is added where it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Answer {
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
pub enum Form {
    /// Those of the validator of 2004.
    #[default]
    Official,
    /// Those of the retailer's test of 2016.
    Retail,
}

impl FromStr for Form {
    type Err = String;

    fn from_str(text: &str) -> Result<Form, String> {
        match text {
            "official" => Ok(Form::Official),
            "retail" => Ok(Form::Retail),
            other => Err(format!("outputs are of form official or retail, not {other}")),
        }
    }
}

impl Answer {
    /// Seconds within which it is due.
    pub fn limit_seconds(&self) -> u32 {
        match self {
            Answer::Expenditure { .. } => 10,
            _ => 5,
        }
    }

    /// When the row that it answers was sent.
    pub fn time(&self) -> u32 {
        match *self {
            Answer::Toll { time, .. }
            | Answer::Accident { time, .. }
            | Answer::Balance { time, .. }
            | Answer::Expenditure { time, .. } => time,
        }
    }

    /// The text form, delivered at second `emit`.
    pub fn line(&self, form: Form, emit: impl fmt::Display) -> String {
        match (*self, form) {
            (Answer::Toll { vid, time, speed, toll }, _) => format!("0,{vid},{time},{emit},{speed},{toll}"),
            (Answer::Accident { time, vid, segment, .. }, Form::Official) => {
                format!("1,{time},{emit},{vid},{segment}")
            }
            (Answer::Accident { time, vid, segment, xway, direction }, Form::Retail) => {
                format!("1,{time},{emit},{xway},{segment},{direction},{vid}")
            }
            (Answer::Balance { time, query, result_time, balance }, Form::Official) => {
                format!("2,{time},{emit},{query},{result_time},{balance}")
            }
            (Answer::Balance { time, query, result_time, balance }, Form::Retail) => {
                format!("2,{time},{emit},{result_time},{query},{balance}")
            }
            (Answer::Expenditure { time, query, balance }, _) => format!("3,{time},{emit},{query},{balance}"),
        }
    }

    /// Reads the text form: the answer, and when it was delivered. Expressway and direction of an
    /// official accident are 0.
    ///
    /// # Errors
    /// What is wrong, without the place.
    pub fn parse(line: &str, form: Form) -> Result<(Answer, f64), String> {
        let fields: Vec<f64> = line
            .split(',')
            .map(|field| field.trim().parse().map_err(|_| format!("'{}' is no number", field.trim())))
            .collect::<Result<_, _>>()?;
        let whole = |at: usize| fields[at] as u32;
        let answer = match (fields.as_slice(), form) {
            ([0.0, _, _, emit, speed, _], _) => {
                (Answer::Toll { vid: whole(1), time: whole(2), speed: *speed as i32, toll: whole(5) }, *emit)
            }
            ([1.0, _, emit, _, _], Form::Official) => (
                Answer::Accident { time: whole(1), vid: whole(3), segment: whole(4) as u8, xway: 0, direction: 0 },
                *emit,
            ),
            ([1.0, _, emit, _, _, _, _], Form::Retail) => {
                let (xway, direction) = (whole(3) as u16, whole(5) as u8);
                (Answer::Accident { time: whole(1), vid: whole(6), segment: whole(4) as u8, xway, direction }, *emit)
            }
            ([2.0, _, emit, _, _, _], form) => {
                let (query, result_time) = if form == Form::Official { (3, 4) } else { (4, 3) };
                let (query, result_time) = (whole(query), whole(result_time));
                (Answer::Balance { time: whole(1), query, result_time, balance: whole(5) }, *emit)
            }
            ([3.0, _, emit, _, _], _) => {
                (Answer::Expenditure { time: whole(1), query: whole(3), balance: whole(4) }, *emit)
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
pub fn read(input: impl BufRead, form: Form) -> io::Result<Vec<(Answer, f64)>> {
    let mut answers = Vec::new();
    for (at, line) in input.lines().enumerate() {
        let line = line?;
        if !line.trim().is_empty() {
            answers.push(
                Answer::parse(&line, form).map_err(|reason| {
                    io::Error::new(io::ErrorKind::InvalidData, format!("line {}: {reason}", at + 1))
                })?,
            );
        }
    }
    Ok(answers)
}
