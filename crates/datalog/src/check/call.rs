//! Which functor a call means, by the types of its operands.

use anabranch_engine::Error;

use super::lower::Lowering;
use super::scope::{Names, is_whole};
use super::signatures::wrong_count;
use super::types::Type;
use crate::ast::{Argument, Span};
use crate::core::{Literal, Term};
use crate::functor::Functor;
use crate::value::Base;

/// The type of a functor's values, where it is the same for all operands.
pub(super) fn fixed_output(functor: &str) -> Option<Base> {
    Some(match functor {
        "cat" | "substr" | "to_string" => Base::Symbol,
        "strlen" | "ord" | "to_number" | "utoi" | "ftoi" => Base::Number,
        "to_unsigned" | "itou" | "ftou" => Base::Unsigned,
        "to_float" | "itof" | "utof" => Base::Float,
        _ => return None,
    })
}

/// A call, its place and what its place wants.
pub(super) struct Call<'c> {
    pub functor: &'c str,
    pub arguments: &'c [Argument],
    pub wanted: Option<&'c Type>,
    pub at: Span,
}

impl Lowering<'_> {
    pub(super) fn call(
        &mut self,
        call: &Call<'_>,
        names: Option<&Names>,
        extras: &mut Vec<Literal>,
    ) -> Result<(Term, Type), Error> {
        match fixed_output(call.functor) {
            Some(output) => {
                let (functor, wanted) = self.conversion(call, names)?;
                let terms = self.operands(call, &wanted, names, extras)?;
                Ok((Term::Call(functor, terms), self.primitive(output)))
            }
            None => self.operator(call, names, extras),
        }
    }

    /// Functors that give one type, and the types that they take.
    fn conversion(&self, call: &Call<'_>, names: Option<&Names>) -> Result<(Functor, Vec<Base>), Error> {
        use Base::{Float, Number, Symbol, Unsigned};
        let first = call.arguments.first().and_then(|argument| self.scope.type_of(argument, names));
        let is_number = call.functor == "to_string" || call.arguments.first().is_some_and(is_whole);
        let from = first.map_or(if is_number { Number } else { Symbol }, |of| of.base);
        let takes = |functor, wanted: &[Base]| Ok((functor, wanted.to_vec()));
        match (call.functor, from) {
            ("cat", _) if call.arguments.len() >= 2 => Ok((Functor::Cat, vec![Symbol; call.arguments.len()])),
            ("cat", _) => Err(Error::invalid("cat takes two arguments or more").at(call.at.start)),
            ("substr", _) => takes(Functor::Substring, &[Symbol, Number, Number]),
            ("strlen", _) => takes(Functor::Length, &[Symbol]),
            ("ord", of) if of.is_structured() => takes(Functor::Ord, &[of]),
            ("ord", _) => takes(Functor::Ord, &[Symbol]),
            ("to_string", Symbol) => takes(Functor::Same, &[Symbol]),
            ("to_string", Float) => takes(Functor::FloatToText, &[Float]),
            ("to_string", Unsigned) => takes(Functor::NumberToText, &[Unsigned]),
            ("to_string", _) => takes(Functor::NumberToText, &[Number]),
            ("to_number" | "ftoi", Float) => takes(Functor::FloatToNumber, &[Float]),
            ("to_number" | "utoi", Unsigned) => takes(Functor::Same, &[Unsigned]),
            ("to_number", Number) => takes(Functor::Same, &[Number]),
            ("to_number", _) => takes(Functor::TextToNumber, &[Symbol]),
            ("to_unsigned" | "ftou", Float) => takes(Functor::FloatToUnsigned, &[Float]),
            ("to_unsigned" | "itou", Number) => takes(Functor::NumberToUnsigned, &[Number]),
            ("to_unsigned", Unsigned) => takes(Functor::Same, &[Unsigned]),
            ("to_unsigned", _) => takes(Functor::TextToUnsigned, &[Symbol]),
            ("to_float" | "itof", Number) => takes(Functor::NumberToFloat, &[Number]),
            ("to_float" | "utof", Unsigned) => takes(Functor::NumberToFloat, &[Unsigned]),
            ("to_float", Float) => takes(Functor::Same, &[Float]),
            ("to_float", _) => takes(Functor::TextToFloat, &[Symbol]),
            ("ftoi", _) => takes(Functor::FloatToNumber, &[Float]),
            ("ftou", _) => takes(Functor::FloatToUnsigned, &[Float]),
            ("utoi", _) => takes(Functor::Same, &[Unsigned]),
            ("utof", _) => takes(Functor::NumberToFloat, &[Unsigned]),
            ("itou", _) => takes(Functor::NumberToUnsigned, &[Number]),
            _ => takes(Functor::NumberToFloat, &[Number]),
        }
    }

    /// Operators, whose operands have one type, which is that of the value too.
    fn operator(
        &mut self,
        call: &Call<'_>,
        names: Option<&Names>,
        extras: &mut Vec<Literal>,
    ) -> Result<(Term, Type), Error> {
        let known = call.arguments.iter().find_map(|operand| self.scope.type_of(operand, names));
        let base = known.or_else(|| call.wanted.cloned()).map_or(Base::Number, |of| of.base);
        let n_operands = match call.functor {
            "min" | "max" | "range" => call.arguments.len(),
            "negate" | "bnot" | "lnot" => 1,
            _ => 2,
        };
        let functor = operator(call.functor, base).ok_or_else(|| self.no_operator(call.functor, base, call.at))?;
        let terms = self.operands(call, &vec![base; n_operands], names, extras)?;
        let typed = self.primitive(base);
        if call.functor != "range" {
            return Ok((Term::Call(functor, terms), typed));
        }
        if !(2..=3).contains(&terms.len()) {
            return Err(Error::invalid("range takes a start, an end and perhaps a step").at(call.at.start));
        }
        let result = self.scope.fresh(typed.clone());
        extras.push(Literal::Range { result, arguments: terms, base, at: call.at });
        Ok((Term::Variable(result), typed))
    }

    fn operands(
        &mut self,
        call: &Call<'_>,
        wanted: &[Base],
        names: Option<&Names>,
        extras: &mut Vec<Literal>,
    ) -> Result<Vec<Term>, Error> {
        if call.arguments.len() != wanted.len() {
            return Err(wrong_count(&format!("functor {}", call.functor), wanted.len(), call.arguments.len(), call.at));
        }
        let mut terms = vec![];
        for (argument, base) in call.arguments.iter().zip(wanted) {
            let (term, of) = match base.is_structured() {
                true => self.term(argument, None, names, extras)?,
                false => self.term(argument, Some(&self.primitive(*base)), names, extras)?,
            };
            if of.base != *base {
                let (is, wanted) = (self.shown(of.base), self.shown(*base));
                return Err(Error::invalid(format!("functor {} takes a {wanted} here, not a {is}", call.functor))
                    .at(argument.at.start));
            }
            if term == Term::Wildcard {
                return Err(Error::invalid(format!("functor {} has no value for a wildcard", call.functor))
                    .at(argument.at.start)
                    .with_hint("Name the variable, and bind it in an atom."));
            }
            terms.push(term);
        }
        Ok(terms)
    }

    fn no_operator(&self, operator: &str, base: Base, at: Span) -> Error {
        let shown = if operator == "negate" { "-" } else { operator };
        let error = Error::invalid(format!("there is no {shown} of type {}", self.shown(base))).at(at.start);
        match base {
            Base::Symbol => error.with_hint("to_number(..) makes a number of a symbol."),
            _ => error,
        }
    }
}

fn operator(name: &str, base: Base) -> Option<Functor> {
    use Base::{Float, Number, Symbol, Unsigned};
    use Functor as F;
    Some(match (name, base) {
        ("+", Symbol) => F::Cat,
        ("min", Number | Unsigned | Float | Symbol) => F::Min,
        ("max", Number | Unsigned | Float | Symbol) => F::Max,
        ("+", Number | Unsigned | Float) => F::Add,
        ("-", Number | Float) => F::Subtract,
        ("-", Unsigned) => F::SubtractUnsigned,
        ("*", Number | Unsigned | Float) => F::Multiply,
        ("/", Number | Unsigned | Float) => F::Divide,
        ("%", Number | Unsigned) => F::Modulo,
        ("^", Number | Unsigned) => F::Power,
        ("^", Float) => F::PowerFloat,
        ("negate", Number) => F::Negate,
        ("negate", Float) => F::NegateFloat,
        ("band", Number | Unsigned) => F::Band,
        ("bor", Number | Unsigned) => F::Bor,
        ("bxor", Number | Unsigned) => F::Bxor,
        ("bshl", Number) => F::Bshl,
        ("bshr", Number | Unsigned) => F::Bshr,
        ("bshru", Number | Unsigned) => F::Bshru,
        ("bnot", Number) => F::Bnot,
        ("land", Number | Unsigned) => F::Land,
        ("lor", Number | Unsigned) => F::Lor,
        ("lxor", Number | Unsigned) => F::Lxor,
        ("lnot", Number | Unsigned) => F::Lnot,
        ("range", Number | Unsigned) => F::Range,
        ("range", Float) => F::RangeFloat,
        _ => return None,
    })
}
