/**
 * The input lists of a node: for a link the slot of its producer, for a constant a list of one. Only declared inputs are
 * passed on; an absent optional one is simply not there. Lazy inputs that the node has not asked for are reported as missing.
 */
import { NodeError } from '../../node/node-error.ts'
import type { Slot } from '../../values/value.ts'
import { declarationsOf, isLinkValue, type LiveNode } from '../live-graph.ts'

export interface GatheredInputs {
  readonly lists: ReadonlyMap<string, Slot>
  readonly missing: ReadonlySet<string>
}

interface GatherFrom {
  outputsOf(nodeId: string): readonly Slot[] | null
  /** Lazy inputs that the node has asked for; others stay hidden from it even when their producer has run. */
  readonly asked: ReadonlySet<string>
}

export function gatherInputs(live: LiveNode, { outputsOf, asked }: GatherFrom): GatheredInputs {
  const lists = new Map<string, Slot>()
  const missing = new Set<string>()
  for (const { path, options, category } of wantedInputs(live)) {
    const value = live.inputs[path]
    if (value === undefined || !Object.hasOwn(live.inputs, path)) {
      if (category === 'required') throw missingArgument(live, path)
      continue
    }
    if (!isLinkValue(value) || options.rawLink === true) {
      lists.set(path, [value])
      continue
    }
    const isLazy = live.node.asksLazily && options.lazy === true
    if (isLazy && !asked.has(path)) missing.add(path)
    else lists.set(path, slotOf(outputsOf(value[0]), value))
  }
  return { lists, missing }
}

type Wanted = Pick<ReturnType<typeof declarationsOf>[number], 'path' | 'options' | 'category'>

/** What the class declares and, for a class that takes everything, whatever else was given. */
function wantedInputs(live: LiveNode): readonly Wanted[] {
  const declared = declarationsOf(live)
  if (!live.node.acceptsAllInputs) return declared
  const known = new Set(declared.map(({ path }) => path))
  const others = Object.keys(live.inputs).filter((name) => !known.has(name))
  return [...declared, ...others.map((path): Wanted => ({ path, options: {}, category: 'optional' }))]
}

function slotOf(outputs: readonly Slot[] | null, [producer, slot]: readonly [string, number]): Slot {
  if (outputs === null) throw new NodeError('RuntimeError', `node ${producer} has not run`)
  const values = outputs[slot]
  if (values === undefined) throw new NodeError('IndexError', `node ${producer} has no output slot ${slot}`)
  return values
}

function missingArgument({ node }: LiveNode, name: string): NodeError {
  return new NodeError('TypeError', `${node.classType} is missing 1 required argument: '${name}'`)
}
