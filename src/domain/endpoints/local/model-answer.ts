/** What a workflow made, as the answer of a model: `{"files": [{name, content_type, data}], "texts": []}`, or the first file itself. */
import { type JsonObject, stringifyLosslessJson } from '../../../../lib/json/lossless-json.ts'
import type { ProviderRefusal, ProviderResult, SubmitOutcome } from '../../models/provider.ts'

export interface AnswerFile {
  readonly name: string
  readonly contentType: string
  readonly sizeBytes: number
  /** The output that it belongs to; left out: outputs have no names here. */
  readonly output?: string
  open(): Promise<AsyncIterable<Uint8Array>>
}

type Ended = Exclude<SubmitOutcome, { outcome: 'accepted' }>

// Less is one piece in memory, which most answers are.
const WHOLE_BYTES = 16_777_216

export async function toDocument(
  files: readonly AnswerFile[],
  { texts, ...about }: JsonObject & { readonly texts: readonly string[] },
): Promise<Ended> {
  return toResult(files, 'application/json', writeDocument(files, texts, about))
}

export async function toFile([first]: readonly AnswerFile[]): Promise<Ended> {
  if (first === undefined) return refused('failed', 'the workflow made no file', 'ended')
  return toResult([first], first.contentType, await first.open())
}

async function toResult(
  files: readonly AnswerFile[],
  contentType: string,
  body: AsyncIterable<Uint8Array>,
): Promise<Ended> {
  const isSmall = files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0) <= WHOLE_BYTES
  const result: ProviderResult = {
    body: isSmall ? Buffer.concat(await Array.fromAsync(body)) : body,
    contentType,
    usage: null,
    costMicros: null,
  }
  return { outcome: 'finished', result }
}

async function* writeDocument(
  files: readonly AnswerFile[],
  texts: readonly string[],
  about: JsonObject,
): AsyncGenerator<Uint8Array> {
  yield Buffer.from('{"files":[')
  for (const [index, { name, contentType, output, open }] of files.entries()) {
    const said = JSON.stringify({ ...(output !== undefined && { output }), name, content_type: contentType })
    yield Buffer.from(`${index === 0 ? '' : ','}${said.slice(0, -1)},"data":"`)
    yield* toBase64(await open())
    yield Buffer.from('"}')
  }
  const rest = Object.entries(about).map(([name, value]) => `,${JSON.stringify(name)}:${stringifyLosslessJson(value)}`)
  yield Buffer.from(`],"texts":${JSON.stringify(texts)}${rest.join('')}}`)
}

/** Three bytes are four letters: what is left over waits for the next chunk. */
async function* toBase64(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let rest: Uint8Array = Buffer.alloc(0)
  for await (const chunk of bytes) {
    const all = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    const whole = all.length - (all.length % 3)
    yield Buffer.from(Buffer.from(all.buffer, all.byteOffset, whole).toString('base64'), 'latin1')
    rest = all.subarray(whole)
  }
  if (rest.length > 0) yield Buffer.from(Buffer.from(rest).toString('base64'), 'latin1')
}

export function refused(
  reason: 'failed' | 'timeout',
  message: string,
  generation: ProviderRefusal['generation'],
): Ended {
  return { outcome: 'refused', refusal: { reason, message, upstreamStatus: null, generation } }
}
