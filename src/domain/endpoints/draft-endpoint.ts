/** What a file, and what its author says of it, would become as a version. */
import { stringifyLosslessJson } from '../../../lib/json/lossless-json.ts'
import { applyDeclaration } from './declaration.ts'
import type { Draft, DraftRequest } from './manage-endpoints.ts'
import type { Propose } from './propose/propose.ts'
import { readExport, withPlaces } from './read-export.ts'

export function createDraftEndpoint(propose: Propose): (request: DraftRequest) => Promise<Draft> {
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
    const text = stringifyLosslessJson(graph)
    return { title, description, graph: text, inputs, outputs, required, candidates, warnings, missing }
  }
}
