import { type ClientLines, curlLines, needsKey, serviceAddress } from '../../form/copy-as.tsx'
import { indentJson } from '../../text/indent-json.ts'

export function workflowLines(workflowText: string): ClientLines {
  const settings = `ATELIER_BASE_URL=${serviceAddress()}`
  const file = ["cat > workflow.json <<'JSON'", indentJson(workflowText), 'JSON'].join('\n')
  return {
    curl: curlLines('/api/v2/jobs', `{"workflow":${workflowText}}`),
    SDK: [
      "import { Comfy } from '@comfyorg/sdk'",
      `process.env.COMFY_BASE_URL = '${serviceAddress()}'`,
      ...(needsKey() ? ['// COMFY_API_KEY in the environment'] : []),
      '// workflow.json: this form’s workflow, from the command line’s lines or the JSON view',
      "const job = await new Comfy().run(await new Comfy().workflows.fromFile('workflow.json'))",
    ].join('\n'),
    'command line': `${file}\n${settings} npx atelier run workflow.json --out results`,
  }
}
