/** The call as a program would make it. The key is a name, never its text. */
import { BASE } from '../../base.ts'
import { CopyButton } from '../../components/copy-button.tsx'
import { session } from '../../state/session.ts'
import { indentJson } from '../../text/indent-json.ts'

export function CopyAs({ id, inputText }: { readonly id: string; readonly inputText: string }) {
  const address = window.location.origin + BASE
  const needsKey = session.value?.needs_credential === true
  const shellText = inputText.replaceAll("'", "'\\''")
  const curl = [
    `curl -sf ${address}/v2/models/${id} \\`,
    ...(needsKey ? ['  -H "Authorization: Bearer $ATELIER_KEY" \\'] : []),
    `  -H 'Content-Type: application/json' -d '${shellText}'`,
  ].join('\n')
  const sdk = [
    "import { comfy } from '@comfyorg/sdk'",
    `// COMFY_ROUTER_BASE_URL=${address}${needsKey ? ' and COMFY_API_KEY' : ''} in the environment`,
    `const { data } = await comfy.models.run('${id}', ${indentJson(inputText)})`,
  ].join('\n')
  return (
    <div class="row">
      <CopyButton text={curl} label="Copy as curl" word="curl" />
      <CopyButton text={sdk} label="Copy for the SDK" word="SDK" />
    </div>
  )
}
