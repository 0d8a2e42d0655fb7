/** Partner models for nodes that run on joined workers: the call is made here, so that no provider's key leaves the service. */

import type { ModelAnswer } from '../../../engine/graph/model-call.ts'
import { type JsonValue, parseLosslessJson } from '../../../lib/json/lossless-json.ts'
import type { Turns } from '../../../lib/waiting/turns.ts'
import type { RunModel } from '../engine/model-port.ts'
import { invalidField } from '../errors.ts'
import type { Lease } from '../jobs/job-store.ts'
import { readStoredJson } from '../jobs/run/prepare-run.ts'
import { type ExtraDataKeeper, joinExtraData } from '../jobs/submit/extra-data-keeper.ts'
import type { HeldClaims } from './held-claims.ts'
import type { LeasedModels } from './leased-models.ts'
import type { WorkerIdentity } from './worker-keys.ts'
import { toLease } from './worker-leases.ts'

interface NodeCall {
  readonly model: string
  /** JSON text: numbers of any length survive. */
  readonly input: string
  readonly images: readonly Uint8Array<ArrayBuffer>[]
  readonly key: string
}

export type RunNodeModel = (
  worker: WorkerIdentity,
  lease: Lease,
  call: NodeCall,
  options: { readonly signal: AbortSignal },
) => Promise<ModelAnswer>

export interface WorkerModelsDeps {
  readonly held: HeldClaims
  readonly models: LeasedModels
  readonly runModel: RunModel
  readonly extraData: Pick<ExtraDataKeeper, 'take'>
  readonly turns: Turns
}

export function createWorkerModels({ held, models, runModel, extraData, turns }: WorkerModelsDeps): RunNodeModel {
  return async function runNodeModel(worker, named, { model, input: inputText, images, key }, { signal }) {
    const lease = toLease(worker, named)
    const { job, needsExtraData, sealedExtraData, notes } = await held.mustFind(lease)
    const input = readInput(inputText)
    await models.mustName(lease, { model, key, input, images })
    const credentials = needsExtraData ? extraData.take(job.id, sealedExtraData) : null
    return runModel(
      {
        ...{ model, input, images, key, accountId: job.accountId, jobId: job.id },
        extraData: joinExtraData(notes === null ? null : await readStoredJson(notes, turns), credentials),
      },
      { signal },
    )
  }
}

function readInput(text: string): JsonValue {
  try {
    return parseLosslessJson(text)
  } catch {
    throw invalidField('input', 'must be JSON as a text')
  }
}
