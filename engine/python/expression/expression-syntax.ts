/** An expression as a tree. */
import type { PyValue } from '../python-value.ts'

export type BinaryOperator = '+' | '-' | '*' | '/' | '//' | '%' | '**' | '<<' | '>>' | '&' | '|' | '^' | '@'
export type UnaryOperator = '+' | '-' | '~' | 'not'
export type Comparison = '==' | '!=' | '<' | '<=' | '>' | '>=' | 'in' | 'not in' | 'is' | 'is not'

export type Expression =
  | { readonly kind: 'constant'; readonly value: PyValue }
  | { readonly kind: 'name'; readonly name: string }
  | { readonly kind: 'unary'; readonly operator: UnaryOperator; readonly operand: Expression }
  | {
      readonly kind: 'binary'
      readonly operator: BinaryOperator
      readonly left: Expression
      readonly right: Expression
    }
  | { readonly kind: 'logical'; readonly operator: 'and' | 'or'; readonly operands: readonly Expression[] }
  | {
      readonly kind: 'comparison'
      readonly first: Expression
      readonly rest: readonly { readonly operator: Comparison; readonly operand: Expression }[]
    }
  | { readonly kind: 'choice'; readonly test: Expression; readonly yes: Expression; readonly no: Expression }
  | {
      readonly kind: 'call'
      readonly callee: Expression
      readonly positional: readonly Expression[]
      readonly named: readonly { readonly name: string; readonly value: Expression }[]
    }
  | { readonly kind: 'item'; readonly container: Expression; readonly index: Expression }
  | {
      readonly kind: 'slice'
      readonly container: Expression
      readonly start: Expression | null
      readonly stop: Expression | null
      readonly step: Expression | null
    }
  | { readonly kind: 'attribute'; readonly owner: Expression; readonly name: string }
  /** Python, but not for expressions: a list, a lambda, an f-string … */
  | { readonly kind: 'unavailable'; readonly what: string }
