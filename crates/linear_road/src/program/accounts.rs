//! Accounts of vehicles: charges in, queries in, balances out.
//!
//! Law: a balance counts the charges up to the whole second of the query. State: one entry a
//! vehicle that has ever crossed, kept for ever, since the account may be asked at any time.

use std::sync::Arc;

use anabranch_engine::frame::{Arrived, Given, Instance, UserOperator};
use arrow::array::{ArrayRef, AsArray, Int32Array};
use arrow::datatypes::{DataType, Int32Type};

use super::columns::ANSWER;
use super::hasher::Table;
use crate::row::RowKind;

/// Charges `(vid, second)` and queries `(vid, query)` in; answers out.
pub struct Accounts;

/// What a vehicle has spent.
#[derive(Clone, Copy, Debug)]
pub struct Account {
    /// Second of the last crossing.
    pub last: u32,
    /// Cents.
    pub balance: u32,
}

impl UserOperator for Accounts {
    fn name(&self) -> &str {
        "accounts"
    }

    fn output(&self, inputs: &[Vec<DataType>]) -> Result<Vec<(String, DataType)>, String> {
        let expected = vec![vec![DataType::Int32; 2]; 2];
        match inputs == expected {
            true => Ok(ANSWER.map(|name| (name.to_owned(), DataType::Int32)).to_vec()),
            false => Err("charges and queries are two numbers each".to_owned()),
        }
    }

    fn start(&self) -> Box<dyn Instance> {
        Box::new(Open::default())
    }
}

#[derive(Default)]
struct Open {
    accounts: Table<u32, Account>,
}

impl Open {
    fn charge(&mut self, vid: u32, time: u32, cents: u32) {
        let account = self.accounts.entry(vid).or_insert(Account { last: 0, balance: 0 });
        *account = Account { last: time, balance: account.balance + cents };
    }
}

fn numbers<'a>(rows: &Arrived<'a>, column: usize) -> &'a [i32] {
    rows.columns().get(column).map_or(&[], |column| column.as_primitive::<Int32Type>().values())
}

impl Instance for Open {
    fn advance(&mut self, _upto: i64, inputs: &[Arrived<'_>], out: &mut Given) -> Result<(), String> {
        let [charges, queries] = inputs else { return Err("two inputs are expected".to_owned()) };
        let (payers, cents) = (numbers(charges, 0), numbers(charges, 1));
        let (vids, numbers_of) = (numbers(queries, 0), numbers(queries, 1));
        let mut next = 0;
        let mut pay_until = |accounts: &mut Open, time: i64| {
            while next < charges.len() && charges.times()[next] <= time {
                accounts.charge(payers[next] as u32, charges.times()[next] as u32, cents[next] as u32);
                next += 1;
            }
        };
        let (mut first, mut second) = (Vec::with_capacity(vids.len()), Vec::with_capacity(vids.len()));
        for (vid, time) in vids.iter().zip(queries.times()) {
            pay_until(self, *time);
            let none = Account { last: *time as u32, balance: 0 };
            let account = self.accounts.get(&(*vid as u32)).unwrap_or(&none);
            first.push(account.last as i32);
            second.push(account.balance as i32);
        }
        pay_until(self, i64::MAX);
        let same = |value: i32| Arc::new(Int32Array::from(vec![value; vids.len()])) as ArrayRef;
        let column = |values: Vec<i32>| Arc::new(Int32Array::from(values)) as ArrayRef;
        let columns = vec![
            same(i32::from(RowKind::Balance.number())),
            column(vids.to_vec()),
            column(numbers_of.to_vec()),
            column(first),
            column(second),
            same(0),
            same(0),
        ];
        out.points(columns, queries.times().to_vec());
        Ok(())
    }

    fn size_bytes(&self) -> usize {
        self.accounts.capacity() * (size_of::<(u32, Account)>() + 1)
    }
}
