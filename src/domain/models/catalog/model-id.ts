/** The canonical id of a model, `{provider}/{model}`. Both parts are what stands in the path of a request. */
export interface ModelId {
  readonly id: string
  readonly provider: string
  readonly model: string
}

const SEGMENT = /^[a-z0-9]+(?:[._-][a-z0-9]+)*$/
export const PROVIDER_MAX_LENGTH = 64
export const MODEL_MAX_LENGTH = 128

export function isModelSegment(text: string, maxLength: number): boolean {
  return text.length <= maxLength && SEGMENT.test(text)
}

/** null when the text cannot be the id of any model. */
export function readModelId(text: string): ModelId | null {
  const slash = text.indexOf('/')
  const provider = text.slice(0, Math.max(0, slash))
  const model = text.slice(slash + 1)
  const isId = isModelSegment(provider, PROVIDER_MAX_LENGTH) && isModelSegment(model, MODEL_MAX_LENGTH)
  return isId ? { id: text, provider, model } : null
}
