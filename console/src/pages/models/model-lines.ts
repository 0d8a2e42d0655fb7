import { type ClientLines, curlLines, needsKey, serviceAddress } from '../../form/copy-as.tsx'
import { indentJson } from '../../text/indent-json.ts'

export function modelLines(id: string, inputText: string): ClientLines {
  return {
    curl: curlLines(`/v2/models/${id}`, inputText),
    SDK: [
      "import { comfy } from '@comfyorg/sdk'",
      `// COMFY_ROUTER_BASE_URL=${serviceAddress()}${needsKey() ? ' and COMFY_API_KEY' : ''} in the environment`,
      `const { data } = await comfy.models.run('${id}', ${indentJson(inputText)})`,
    ].join('\n'),
  }
}
