/** What a file, and what its author says of it, would become as a version. */
import { stringifyLosslessJson } from '../../../lib/json/lossless-json.ts'
import { applyDeclaration } from './declaration.ts'
import type { Draft, DraftRequest } from './manage-endpoints.ts'
import type { Propose } from './propose/propose.ts'

export function createDraftEndpoint(propose: Propose): (request: DraftRequest) => Promise<Draft> {
  return async ({ file, declaration, deployment }) => {
    const proposal = await propose(file, deployment ?? null)
    const { title, description, graph, inputs, outputs } = applyDeclaration(proposal, declaration)
    const { candidates, warnings, missing, required } = proposal
    const text = stringifyLosslessJson(graph)
    return { title, description, graph: text, inputs, outputs, required, candidates, warnings, missing }
  }
}
