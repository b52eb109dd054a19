//! Terms as expressions over the rows at hand, and known values matched with terms.

use datafusion_common::ScalarValue;
use datafusion_expr::{BinaryExpr, Expr, Operator, lit};

use super::body::BodyRows;
use super::build::column;
use crate::ast::Comparison;
use crate::core::{Structure, Term, VariableId};
use crate::functor::Functor;
use crate::value::{Base, Value};

impl BodyRows {
    /// The expression of a term whose variables are bound.
    pub(super) fn value(&self, term: &Term) -> Expr {
        match term {
            Term::Variable(variable) => {
                let place = self.place(*variable).expect("the checker has found an order that binds the variable");
                column(&self.plan, place)
            }
            Term::Value(value) => constant(value),
            Term::Call(functor, arguments) => {
                functor.call(arguments.iter().map(|argument| self.value(argument)).collect())
            }
            Term::Structure(structure, parts) => {
                let letters: String =
                    parts.iter().map(|(base, _)| if base.is_structured() { 'r' } else { 's' }).collect();
                let mut arguments = vec![text(&letters)];
                let functor = match structure {
                    Structure::Record => Functor::Record,
                    Structure::Branch(name) => {
                        arguments.push(text(name));
                        Functor::Branch
                    }
                };
                arguments.extend(parts.iter().map(|(_, part)| self.value(part)));
                functor.call(arguments)
            }
            Term::Wildcard => unreachable!("the checker allows wildcards in atoms and patterns only"),
        }
    }
}

/// What a known value gives when a term is matched with it.
#[derive(Default)]
pub(super) struct Matched {
    /// What has to hold, in order.
    pub conditions: Vec<Expr>,
    /// Variables that the match binds.
    pub bindings: Vec<(VariableId, Expr)>,
}

impl Matched {
    /// Matches `pattern` with `value`.
    pub(super) fn of(pattern: &Term, value: Expr, rows: &BodyRows) -> Matched {
        let mut matched = Matched::default();
        matched.add(pattern, value, rows);
        matched
    }

    fn add(&mut self, pattern: &Term, value: Expr, rows: &BodyRows) {
        match pattern {
            Term::Wildcard => {}
            Term::Variable(variable) => {
                let bound = self.bindings.iter().find(|(other, _)| other == variable).map(|(_, value)| value.clone());
                let bound = bound.or_else(|| rows.place(*variable).map(|_| rows.value(pattern)));
                match bound {
                    Some(bound) => self.conditions.push(equal(bound, value)),
                    None => self.bindings.push((*variable, value)),
                }
            }
            Term::Value(_) | Term::Call(..) => self.conditions.push(equal(value, rows.value(pattern))),
            Term::Structure(structure, parts) => {
                let name = match structure {
                    Structure::Record => "",
                    Structure::Branch(name) => name,
                };
                self.conditions.push(Functor::IsOf.call(vec![value.clone(), text(name)]));
                for (idx, (base, part)) in parts.iter().enumerate() {
                    let functor = match base {
                        Base::Symbol => Functor::TextPart,
                        Base::Number | Base::Unsigned => Functor::NumberPart,
                        Base::Float => Functor::FloatPart,
                        Base::Record(_) | Base::Branches(_) => Functor::InnerPart,
                    };
                    self.add(part, functor.call(vec![value.clone(), lit(idx as i64)]), rows);
                }
            }
        }
    }
}

/// The condition of a comparison.
pub(super) fn compare(comparison: Comparison, left: Expr, right: Expr) -> Expr {
    use Comparison as C;
    let operator = match comparison {
        C::Equal => Operator::Eq,
        C::NotEqual => Operator::NotEq,
        C::Less => Operator::Lt,
        C::LessOrEqual => Operator::LtEq,
        C::Greater => Operator::Gt,
        C::GreaterOrEqual => Operator::GtEq,
        C::Match => return Functor::Match.call(vec![left, right]),
        C::Contains => return Functor::Contains.call(vec![left, right]),
        C::NotMatch => return Expr::Not(Box::new(Functor::Match.call(vec![left, right]))),
        C::NotContains => return Expr::Not(Box::new(Functor::Contains.call(vec![left, right]))),
    };
    binary(left, operator, right)
}

pub(super) fn equal(left: Expr, right: Expr) -> Expr {
    binary(left, Operator::Eq, right)
}

fn binary(left: Expr, operator: Operator, right: Expr) -> Expr {
    Expr::BinaryExpr(BinaryExpr::new(Box::new(left), operator, Box::new(right)))
}

pub(super) fn constant(value: &Value) -> Expr {
    Expr::Literal(value.to_scalar(), None)
}

fn text(text: &str) -> Expr {
    Expr::Literal(ScalarValue::Utf8View(Some(text.to_owned())), None)
}

/// Whether computing the term can fail.
pub(super) fn may_fail(term: &Term) -> bool {
    match term {
        Term::Call(functor, arguments) => functor.may_fail() || arguments.iter().any(may_fail),
        Term::Structure(_, parts) => parts.iter().any(|(_, part)| may_fail(part)),
        _ => false,
    }
}
