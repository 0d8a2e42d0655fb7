/**
 * Whether a run that succeeded has told everything. Some servers answer a run whose outputs were cached with success and no
 * outputs at all: such a node has to be made to run. A node that ran and reported nothing has nothing to report. Pure.
 */
import type { Graph } from '../../../../../engine/graph/graph.ts'
import type { NodeCatalog } from '../../../../../engine/graph/node-catalog.ts'
import type { HistoryEntry } from '../wire/run-history.ts'

export interface ToldOutputs {
  readonly graph: Graph
  readonly catalog: NodeCatalog
  readonly entry: HistoryEntry
  /** Nodes whose report came over the socket. */
  readonly reported: ReadonlySet<string>
  /** Nodes that were seen to run. */
  readonly ran: ReadonlySet<string>
  /** Classes that were found to report nothing even when they run. */
  readonly silentClasses: ReadonlySet<string>
}

/** Their results are files or texts, always. */
const ALWAYS_REPORTS: ReadonlySet<string> = new Set([
  'SaveImage',
  'PreviewImage',
  'PreviewAny',
  'SaveAnimatedWEBP',
  'SaveAnimatedPNG',
  'SaveImageAdvanced',
  'SaveVideo',
  'SaveWEBM',
  'SaveAudio',
  'SaveAudioMP3',
  'SaveAudioOpus',
  'PreviewAudio',
  'SaveLatent',
  'SaveText',
])

/** Output nodes that should have reported and did not. */
export function missingReports({ graph, catalog, entry, reported, ran, silentClasses }: ToldOutputs): string[] {
  const told = new Set([...reported, ...entry.outputs.map(([nodeId]) => nodeId)])
  return [...graph].flatMap(([nodeId, { classType }]) => {
    if (catalog.find(classType)?.output_node !== true || told.has(nodeId) || silentClasses.has(classType)) return []
    const isCached = entry.cached.has(nodeId)
    const isEmptied = told.size === 0 && !ran.has(nodeId) && ALWAYS_REPORTS.has(classType)
    return isCached || isEmptied ? [nodeId] : []
  })
}
