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
    /// official accident are 0. Whole numbers may have a fraction of zeros.
    ///
    /// # Errors
    /// What is wrong, without the place.
    pub fn parse(line: &str, form: AnswerForm) -> Result<(TollAnswer, f64), String> {
        let texts: Vec<&str> = line.split(',').map(str::trim).collect();
        let fields = Fields { columns: columns(texts[0], form)?, texts };
        if fields.texts.len() != fields.columns.len() {
            let (kind, n, columns) = (fields.texts[0], fields.texts.len(), fields.columns);
            let known = format!("an output of type {kind} has {} fields ({})", columns.len(), columns.join(", "));
            return Err(format!("{known}, but this one has {n}"));
        }
        let number = |name: &str| fields.whole(name, 0, u32::MAX).map(|value| value as u32);
        let time = number("time")?;
        let emit = fields.number("emit")?;
        let answer = match fields.texts[0] {
            "0" => {
                let speed = fields.whole("speed", -1, u32::from(u8::MAX))? as i32;
                TollAnswer::Toll { vid: number("vehicle")?, time, speed, toll: number("toll")? }
            }
            "1" => {
                let (xway, direction) = match form {
                    AnswerForm::Official => (0, 0),
                    AnswerForm::Retail => (
                        fields.whole("expressway", 0, u32::from(u16::MAX))? as u16,
                        fields.whole("direction", 0, 1)? as u8,
                    ),
                };
                let segment = fields.whole("segment", 0, 99)? as u8;
                TollAnswer::Accident { time, vid: number("vehicle")?, segment, xway, direction }
            }
            "2" => {
                let (query, result_time) = (number("query")?, number("result time")?);
                TollAnswer::Balance { time, query, result_time, balance: number("balance")? }
            }
            _ => TollAnswer::Expenditure { time, query: number("query")?, balance: number("balance")? },
        };
        Ok((answer, emit))
    }
}

/// The columns of an output, by its type.
fn columns(kind: &str, form: AnswerForm) -> Result<&'static [&'static str], String> {
    Ok(match (kind, form) {
        ("0", _) => &["type", "vehicle", "time", "emit", "speed", "toll"],
        ("1", AnswerForm::Official) => &["type", "time", "emit", "vehicle", "segment"],
        ("1", AnswerForm::Retail) => &["type", "time", "emit", "expressway", "segment", "direction", "vehicle"],
        ("2", AnswerForm::Official) => &["type", "time", "emit", "query", "result time", "balance"],
        ("2", AnswerForm::Retail) => &["type", "time", "emit", "result time", "query", "balance"],
        ("3", _) => &["type", "time", "emit", "query", "balance"],
        (other, _) => return Err(format!("the type of an output (field 1) is 0, 1, 2 or 3, not '{other}'")),
    })
}

/// A line of outputs, cut into fields.
struct Fields<'a> {
    /// Names of the fields.
    columns: &'static [&'static str],
    /// As many as there are in the line.
    texts: Vec<&'a str>,
}

impl Fields<'_> {
    /// The place of a column, from 1 on, and its text.
    fn find(&self, name: &str) -> (usize, &str) {
        let at = self.columns.iter().position(|column| *column == name).expect("a column of this type of outputs");
        (at + 1, self.texts[at])
    }

    fn number(&self, name: &str) -> Result<f64, String> {
        let (at, text) = self.find(name);
        let number = text.parse().ok().filter(|number: &f64| number.is_finite());
        number.ok_or_else(|| format!("field {at} ({name}) is a number, not '{text}'"))
    }

    fn whole(&self, name: &str, least: i64, most: u32) -> Result<i64, String> {
        let (at, text) = self.find(name);
        let range = least as f64..=f64::from(most);
        let value = text.parse().ok().filter(|value: &f64| value.fract() == 0.0 && range.contains(value));
        let value = value
            .ok_or_else(|| format!("field {at} ({name}) is a whole number from {least} to {most}, not '{text}'"))?;
        Ok(value as i64)
    }
}

/// Reads a file of outputs, one a line.
///
/// # Errors
/// `Invalid data` names the line; other errors are the file's.
pub fn read(input: impl BufRead, form: AnswerForm) -> io::Result<Vec<(TollAnswer, f64)>> {
    let mut answers = Vec::new();
    for (at, line) in input.lines().enumerate() {
        // (Bytes that are no text are the only failure of a line as such.)
        let named = |reason: String| io::Error::new(io::ErrorKind::InvalidData, format!("line {}: {reason}", at + 1));
        let line = line.map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => named(error.to_string()),
            _ => error,
        })?;
        if !line.trim().is_empty() {
            answers.push(TollAnswer::parse(&line, form).map_err(named)?);
        }
    }
    Ok(answers)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWERS: [TollAnswer; 4] = [
        TollAnswer::Toll { vid: 7, time: 65, speed: -1, toll: 200 },
        TollAnswer::Accident { time: 180, vid: 8, segment: 99, xway: 0, direction: 0 },
        TollAnswer::Balance { time: 200, query: 5, result_time: 120, balance: 4_000_000_000 },
        TollAnswer::Expenditure { time: 3, query: 6, balance: 98 },
    ];

    #[test]
    fn answers_survive_both_text_forms() {
        for form in [AnswerForm::Official, AnswerForm::Retail] {
            let text: String = ANSWERS.map(|answer| answer.line(form, "201.5") + "\r\n").concat();
            let found = read(text.as_bytes(), form).unwrap();
            assert_eq!(found, ANSWERS.map(|answer| (answer, 201.5)), "{form:?}");
        }
    }

    #[test]
    fn bad_answers_are_named_by_line_and_field() {
        for (line, reason) in [
            (
                "0,7,65,66,30",
                "an output of type 0 has 6 fields (type, vehicle, time, emit, speed, toll), but this one has 5",
            ),
            ("0,7,65,66,30,-2", "field 6 (toll) is a whole number from 0 to 4294967295, not '-2'"),
            ("0,7,65,66,30,2.5", "field 6 (toll) is a whole number from 0 to 4294967295, not '2.5'"),
            ("0,7,65,nan,30,2", "field 4 (emit) is a number, not 'nan'"),
            ("1,65,66,7,100", "field 5 (segment) is a whole number from 0 to 99, not '100'"),
            ("4,65,66,7", "the type of an output (field 1) is 0, 1, 2 or 3, not '4'"),
            ("type,vehicle", "the type of an output (field 1) is 0, 1, 2 or 3, not 'type'"),
        ] {
            let text = format!("3,1,2,3,4\n\n{line}\n");
            let error = read(text.as_bytes(), AnswerForm::Official).unwrap_err();
            assert_eq!(error.to_string(), format!("line 3: {reason}"));
        }
        let error = read(&b"3,1,2,3,4\n\xff\n"[..], AnswerForm::Official).unwrap_err();
        assert!(error.to_string().starts_with("line 2: "), "{error}");
    }
}
