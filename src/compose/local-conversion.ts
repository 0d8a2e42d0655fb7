/** Workflow files without a service: what a file carries, and its conversion for an engine in this process. */
import type { NodeCatalog } from '../../engine/graph/node-catalog.ts'
import { systemClock } from '../../lib/clock.ts'
import type { ByteSource } from '../../lib/files/embedded/byte-source.ts'
import { readEmbeddedTexts } from '../../lib/files/embedded/embedded-texts.ts'
import type { JsonObject, JsonValue } from '../../lib/json/lossless-json.ts'
import { ServiceError } from '../domain/errors.ts'
import {
  type ConvertedFile,
  carriedTexts,
  createConvertFile,
  withoutOddNumbers,
} from '../domain/workflows/convert/convert-file.ts'

type LocalConversion =
  | { readonly kind: 'converted'; readonly file: ConvertedFile }
  | { readonly kind: 'refused'; readonly message: string; readonly nodeErrors: JsonObject }

export async function convertLocally(content: JsonValue, catalog: NodeCatalog): Promise<LocalConversion> {
  const convertFile = createConvertFile({ catalog: () => catalog, clock: systemClock, random: Math.random })
  try {
    return { kind: 'converted', file: await convertFile(content, null) }
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    const nodeErrors = (error.details?.['node_errors'] ?? {}) as JsonObject
    return { kind: 'refused', message: error.message, nodeErrors }
  }
}

/** The JSON texts that a media file carries, the better one first; null when it is no such file. */
export function readCarriedTexts(source: ByteSource): string[] | null {
  const texts = readEmbeddedTexts(source)
  return texts === null ? null : carriedTexts(texts).map(withoutOddNumbers)
}
