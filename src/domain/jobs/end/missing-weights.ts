/** Says of a run that did not find its weights which file is missing, in which folder, and which engines have it. Pure. */
import type { Graph } from '../../../../engine/graph/graph.ts'
import type { FindWeights } from '../../engine/weights/missing-weights.ts'
import { isWeights } from '../../workflows/needs.ts'
import type { JobError } from '../job.ts'

interface FailedRun {
  readonly graph: Graph
  readonly engineId: string
  readonly findWeights: FindWeights
}

const MISSING_WEIGHTS = 'missing_weights'
const MAX_NAMED = 4

/** Any other error, and one whose node names no weights, is given back as it is. */
export function explainMissing(error: JobError, { graph, engineId, findWeights }: FailedRun): JobError {
  if (error.code !== MISSING_WEIGHTS || error.nodeId === null) return error
  const node = graph.get(error.nodeId)
  const named = Object.entries(node?.inputs ?? {}).flatMap(([input, value]) =>
    typeof value === 'string' && isWeights(value) ? [{ input, name: value }] : [],
  )
  if (node === undefined || named.length === 0) return error
  // A node may load several files; the engine says which one it lacks, as a rule.
  const told = named.filter(({ name }) => error.message.includes(name))
  const words = (told.length > 0 ? told : named).slice(0, MAX_NAMED).map(({ input, name }) => {
    const { folder, engines } = findWeights({ classType: node.classType, input, name })
    const others = engines.filter((id) => id !== engineId)
    const where = others.length === 0 ? 'no other engine has it' : `it is on ${others.slice(0, MAX_NAMED).join(', ')}`
    return `${folder === null ? '' : `${folder}/`}${name} is not on engine ${engineId}; ${where}`
  })
  return { ...error, message: `${words.join('. ')}. The engine said: ${error.message}` }
}
