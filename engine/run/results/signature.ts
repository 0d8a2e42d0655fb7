/**
 * The key under which a node's result is cached: a digest of its class, its change value, its constants and the signatures
 * of its producers. Node ids take no part, so the same sub-graph under other ids finds the same results; a class that needs
 * its id, or promises nothing about equal inputs, is keyed by it. null: the result must not be reused.
 */
import { hash } from 'node:crypto'
import { NumberText } from '../../../lib/json/lossless-json.ts'
import { Tensor } from '../../tensor/tensor.ts'
import { Blocker, type Value } from '../../values/value.ts'
import { isLinkValue, type LiveGraph, type LiveNode } from '../live-graph.ts'

type Signature = string | null

/** The change value of a node that has one; null for never cached. */
type ChangeValueOf = (node: LiveNode) => string | null

/** A text that differs whenever the value does. Throws for what has none (tensors inside an expanded graph). */
function canonical(value: Value): string {
  if (typeof value === 'string') return JSON.stringify(value)
  if (typeof value === 'bigint') return value.toString()
  if (value instanceof NumberText) return value.text
  if (value instanceof Tensor || value instanceof Blocker) throw new TypeError('not a constant')
  if (typeof value !== 'object' || value === null) return Object.is(value, -0) ? '-0' : String(value)
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  const keys = Object.keys(value).sort()
  return `{${keys.map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`).join(',')}}`
}

export interface Signatures {
  of(id: string): Signature
}

export function createSignatures(graph: LiveGraph, changeValueOf: ChangeValueOf): Signatures {
  // undefined while a node is being worked on: meeting it again means a cycle, which is never cached.
  const known = new Map<string, Signature | undefined>()

  function sign(live: LiveNode): Signature {
    const parts: string[] = [live.node.classType]
    if (live.node.hasChangeValue) {
      const change = changeValueOf(live)
      if (change === null) return null
      parts.push(change)
    }
    if (live.node.isKeyedById) parts.push(live.id)
    for (const name of Object.keys(live.inputs).sort()) {
      const value = live.inputs[name]
      if (isLinkValue(value)) {
        const producer = known.get(value[0])
        if (producer === undefined || producer === null) return null
        parts.push(name, `@${producer}:${value[1]}`)
      } else {
        try {
          parts.push(name, canonical(value))
        } catch {
          return null
        }
      }
    }
    return hash('sha256', JSON.stringify(parts), 'base64')
  }

  // Depth first without recursion: a chain may be as long as a graph.
  function resolve(id: string): Signature {
    const stack = [id]
    for (let at = stack.at(-1); at !== undefined; at = stack.at(-1)) {
      if (!graph.has(at)) known.set(at, null)
      if (known.get(at) !== undefined) {
        stack.pop()
        continue
      }
      const isFirstVisit = !known.has(at)
      known.set(at, undefined)
      const open = isFirstVisit ? graph.allProducers(at).filter((producer) => !known.has(producer)) : []
      if (open.length > 0) {
        stack.push(...open)
        continue
      }
      known.set(at, sign(graph.get(at)))
      stack.pop()
    }
    return known.get(id) ?? null
  }

  return { of: (id) => known.get(id) ?? resolve(id) }
}
