/** Turns whatever holds a workflow (JSON of the editor or of the API, a picture that ComfyUI saved) into a graph in API format. */
import { isJsonObject, parseLosslessJson, stringifyLosslessJson } from '../../../lib/json/lossless-json.ts'
import { request } from './client.ts'

export interface Converted {
  /** JSON text of the graph. */
  readonly text: string
  readonly warnings: readonly string[]
  readonly missing: readonly string[]
}

export async function convertWorkflow(file: Blob): Promise<Converted> {
  const response = await request('/api/v2/workflows/convert', {
    method: 'POST',
    body: file,
    headers: { 'Content-Type': file.type === '' ? 'application/octet-stream' : file.type },
  })
  const answer = parseLosslessJson(await response.text())
  if (!isJsonObject(answer)) return { text: '{}', warnings: [], missing: [] }
  const { workflow, warnings, missing } = answer
  return {
    text: stringifyLosslessJson(workflow),
    warnings: Array.isArray(warnings)
      ? warnings.flatMap((warning) =>
          isJsonObject(warning) ? [`node ${String(warning['node_id'])}: ${String(warning['message'])}`] : [],
        )
      : [],
    missing: isJsonObject(missing)
      ? [
          ...namesIn(missing['classes'], 'class_type').map((name) => `node class ${name}`),
          ...namesIn(missing['weights'], 'name').map((name) => `weights ${name}`),
        ]
      : [],
  }
}

function namesIn(list: unknown, key: string): readonly string[] {
  if (!Array.isArray(list)) return []
  return list.flatMap((item: unknown) => {
    if (typeof item === 'string') return [item]
    if (typeof item !== 'object' || item === null) return []
    const found = (item as Record<string, unknown>)[key] ?? Object.values(item)[0]
    return typeof found === 'string' ? [found] : []
  })
}
