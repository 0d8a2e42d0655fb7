/** How many characters a node can match. A look behind needs a fixed number of them. */
import { type RegexNode, UNBOUNDED } from './pattern-syntax.ts'

export interface Width {
  readonly min: number
  readonly max: number
}

const NOTHING: Width = { min: 0, max: 0 }
const ONE: Width = { min: 1, max: 1 }

const capped = (width: number) => Math.min(width, UNBOUNDED)

/** `groupWidths` holds the groups that are closed already. */
export function widthOf(node: RegexNode, groupWidths: ReadonlyMap<number, Width>): Width {
  const of = (part: RegexNode) => widthOf(part, groupWidths)
  switch (node.kind) {
    case 'literal':
    case 'set':
    case 'any':
      return ONE
    case 'at':
    case 'look':
      return NOTHING
    case 'sequence':
      return node.nodes.map(of).reduce((a, b) => ({ min: capped(a.min + b.min), max: capped(a.max + b.max) }), NOTHING)
    case 'branch':
      return either(node.options.map(of))
    case 'conditional':
      return either([of(node.yes), of(node.no)])
    case 'repeat': {
      const body = of(node.body)
      return { min: capped(body.min * node.min), max: capped(body.max * node.max) }
    }
    case 'group':
    case 'atomic':
      return of(node.body)
    case 'reference':
      return groupWidths.get(node.group) ?? NOTHING
  }
}

function either(widths: readonly Width[]): Width {
  return { min: Math.min(...widths.map(({ min }) => min)), max: Math.max(...widths.map(({ max }) => max)) }
}
