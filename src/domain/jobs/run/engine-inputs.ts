/** The files of a job as an engine gets them: by the name that stands in the graph, read when they are asked for. */
import type { BlobStore } from '../../assets/blob-store.ts'
import type { EngineInput } from '../../engine/engine-port.ts'
import type { JobInput } from '../job.ts'

type Blobs = Pick<BlobStore, 'open' | 'localPath'>

export function toEngineInputs(inputs: readonly JobInput[], blobs: Blobs): ReadonlyMap<string, EngineInput> {
  return new Map(inputs.map((input) => [input.name, toEngineInput(input, blobs)]))
}

function toEngineInput({ hash, sizeBytes, contentType }: JobInput, blobs: Blobs): EngineInput {
  return {
    hash,
    sizeBytes,
    contentType,
    localPath: blobs.localPath(hash),
    async *read() {
      yield* (await blobs.open(hash)) as AsyncIterable<Uint8Array>
    },
  }
}
