/** What a file, and what its author says of it, would become as a version. */
import type { NodeCatalog } from '../../../engine/graph/node-catalog.ts'
import { type JsonObject, stringifyLosslessJson } from '../../../lib/json/lossless-json.ts'
import type { Turns, Work } from '../../../lib/waiting/turns.ts'
import type { ServiceError } from '../errors.ts'
import { toGraph } from '../workflows/convert/convert-file.ts'
import { applyDeclaration } from './declaration.ts'
import type { EndpointInput } from './endpoint.ts'
import type { Draft, DraftRequest } from './manage-endpoints.ts'
import { findWhyNeverRuns } from './never-runs.ts'
import type { Propose } from './propose/propose.ts'
import { readExport, withPlaces } from './read-export.ts'

interface DraftDeps {
  readonly propose: Propose
  /** What can run in a pool; null: in the common one. */
  readonly catalog: (pool: string | null) => NodeCatalog
  readonly turns: Turns
}

export function createDraftEndpoint({ propose, catalog, turns }: DraftDeps): (request: DraftRequest) => Promise<Draft> {
  return async ({ file, declaration, deployment }) => {
    const exported = readExport(file)
    const proposal = await propose(exported?.workflow ?? file, deployment ?? null)
    const said = declaration ?? exported?.declaration ?? null
    const { title, description, graph, inputs: declared, outputs } = applyDeclaration(proposal, said)
    const { candidates, warnings, missing, required } = proposal
    // Whoever declares inputs anew says where each is.
    const inputs =
      exported !== null && declaration === null
        ? withPlaces(declared, exported.places, [...proposal.inputs, ...candidates])
        : declared
    const fault = await turns.run(judge(graph, inputs, catalog(deployment ?? null)))
    const text = stringifyLosslessJson(graph)
    const content = { graph: text, inputs, outputs, required }
    return { title, description, ...content, candidates, missing, fault, warnings: withFault(warnings, fault) }
  }
}

function* judge(graph: JsonObject, inputs: readonly EndpointInput[], catalog: NodeCatalog): Work<ServiceError | null> {
  return yield* findWhyNeverRuns(yield* toGraph(graph), inputs, catalog)
}

/** Who only looks at the proposal sees it first. */
function withFault(warnings: Draft['warnings'], fault: ServiceError | null): Draft['warnings'] {
  if (fault === null) return warnings
  const [nodeId = ''] = Object.keys(fault.details?.['node_errors'] ?? {})
  return [{ nodeId, input: null, message: `this cannot be published: ${fault.message}` }, ...warnings]
}
