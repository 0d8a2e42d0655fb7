/** The graph of a job as the store has it. Most are read at once; a large one in slices, so that nobody else waits for it. */

import type { Graph } from '../../../../engine/graph/graph.ts'
import { readGraph, readGraphSteps } from '../../../../engine/graph/read-graph.ts'
import { type JsonValue, keepNumber, parseLosslessJson } from '../../../../lib/json/lossless-json.ts'
import { readJsonSteps } from '../../../../lib/json/read-json-steps.ts'
import type { Turns, Work } from '../../../../lib/turns.ts'

const SMALL_LENGTH = 65_536
// It was read within the limits of a request when it was submitted.
const NO_LIMIT = Number.POSITIVE_INFINITY
const LIMITS = { maxDepth: NO_LIMIT, maxValues: NO_LIMIT, maxMembers: NO_LIMIT, maxLongDigits: NO_LIMIT }

export function readStoredGraph(text: string, turns: Turns): Graph | Promise<Graph> {
  return text.length < SMALL_LENGTH ? readGraph(parseLosslessJson(text)) : turns.run(readSteps(text))
}

function* readSteps(text: string): Work<Graph> {
  const value = yield* readJsonSteps(Buffer.from(text), { readNumber: keepNumber, limits: LIMITS })
  return yield* readGraphSteps(value as JsonValue)
}
