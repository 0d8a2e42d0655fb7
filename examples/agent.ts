/**
 * What an agent does with the service, without a model or a library: it asks for the tools, submits a workflow, waits and looks at the
 * picture. node examples/agent.ts [address]
 */
import { readFile } from 'node:fs/promises'

const [address = 'http://127.0.0.1:8189'] = process.argv.slice(2)
const token = process.env['ATELIER_TOKEN']

async function ask(method: string, params: object = {}) {
  const response = await fetch(`${address}/mcp`, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
      ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  })
  const text = await response.text()
  // The answer is JSON, or the last event of a stream.
  const json = text.startsWith('{') ? text : (text.match(/(?<=^data: ).*$/gm) ?? []).at(-1)
  const { result, error } = JSON.parse(json ?? '{}')
  if (error !== undefined) throw new Error(error.message)
  return result
}

/** The first text of a tool's answer, and all of its parts. */
async function use(name: string, given: object) {
  const { content, isError } = await ask('tools/call', { name, arguments: given })
  const text = content.find((part: { type: string }) => part.type === 'text')?.text ?? ''
  if (isError) throw new Error(`${name}: ${text}`)
  return { text, content }
}

const { tools } = await ask('tools/list')
console.log(`${tools.length} tools: ${tools.map(({ name }: { name: string }) => name).join(', ')}`)
const submitted = await use('submit_workflow', { workflow: await readFile('examples/colour-card.json', 'utf8') })
const { id } = JSON.parse(submitted.text)
const ended = JSON.parse((await use('watch_job', { job_id: id })).text)
console.log(`job ${id} ${ended.status}`)
const shown = await use('get_output', { asset_id: ended.outputs[0].asset_id })
for (const part of shown.content) console.log(part.type, part.mimeType ?? part.text ?? part.uri)
