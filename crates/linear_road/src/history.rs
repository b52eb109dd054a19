//! The historical table: what vehicles spent on past days.

use std::collections::HashMap;
use std::io::{self, BufRead, Write};

/// Tolls by (vehicle, day, expressway). Constant during a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    tolls: HashMap<(u32, u8, u16), u32>,
}

impl History {
    /// Adds a row; a later one of the same key replaces an earlier one.
    pub fn insert(&mut self, vid: u32, day: u8, xway: u16, toll: u32) {
        self.tolls.insert((vid, day, xway), toll);
    }

    /// The toll of a key, if there is a row.
    pub fn get(&self, vid: u32, day: u8, xway: u16) -> Option<u32> {
        self.tolls.get(&(vid, day, xway)).copied()
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.tolls.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.tolls.is_empty()
    }

    /// Rows in order of vehicle, day and expressway: `vid, day, xway, toll`.
    pub fn rows(&self) -> Vec<(u32, u8, u16, u32)> {
        let mut rows: Vec<_> = self.tolls.iter().map(|(&(vid, day, xway), &toll)| (vid, day, xway, toll)).collect();
        rows.sort_unstable();
        rows
    }

    /// Writes `vid,day,xway,toll`, one row a line.
    ///
    /// # Errors
    /// Those of the file.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        self.rows().iter().try_for_each(|(vid, day, xway, toll)| writeln!(out, "{vid},{day},{xway},{toll}"))
    }

    /// Reads what [`write`](History::write) wrote.
    ///
    /// # Errors
    /// `Invalid data` names the line; other errors are the file's.
    pub fn read(input: impl BufRead) -> io::Result<History> {
        let mut history = History::default();
        for (at, line) in input.lines().enumerate() {
            let line = line?;
            let fields: Option<Vec<u32>> = line.trim().split(',').map(|field| field.trim().parse().ok()).collect();
            match fields.as_deref() {
                _ if line.trim().is_empty() => {}
                Some(&[vid, day, xway, toll]) if day <= 69 && xway <= 65_535 => {
                    history.insert(vid, day as u8, xway as u16, toll);
                }
                _ => {
                    let error = format!("line {}: a row of history is vid,day,xway,toll, not '{line}'", at + 1);
                    return Err(io::Error::new(io::ErrorKind::InvalidData, error));
                }
            }
        }
        Ok(history)
    }
}
