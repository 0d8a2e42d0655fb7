/** How programs call an endpoint, in a few lines each. The key is the name of a variable, never its text. Pure. */
import { indentJson } from '../../../../lib/json/indent-json.ts'
import { type JsonObject, stringifyLosslessJson } from '../../../../lib/json/lossless-json.ts'

interface SampledCall {
  readonly url: string
  readonly inputs: JsonObject
  readonly needsCredentials: boolean
}

/** As the extension `x-codeSamples` of OpenAPI has them. Each waits up to a minute for the result. */
export function toSamples({ url, inputs, needsCredentials }: SampledCall): JsonObject[] {
  const body = indentJson(stringifyLosslessJson({ inputs }))
  const sources = {
    curl: [
      `curl -sf ${url} \\`,
      ...(needsCredentials ? ['  -H "Authorization: Bearer $ATELIER_TOKEN" \\'] : []),
      `  -H 'Prefer: wait=60' -H 'Content-Type: application/json' -d '${body.replaceAll("'", "'\\''")}'`,
    ],
    TypeScript: [
      `const answer = await fetch('${url}', {`,
      "  method: 'POST',",
      '  headers: {',
      ...(needsCredentials ? ["    Authorization: 'Bearer ' + process.env.ATELIER_TOKEN,"] : []),
      "    'Content-Type': 'application/json',",
      "    Prefer: 'wait=60',",
      '  },',
      `  body: JSON.stringify(${body}),`,
      '})',
      'const { status, results } = await answer.json()',
      'console.log(status, results)',
    ],
    Python: [
      'import json, os, urllib.request',
      // Quotes would end the text of Python; JSON has another word for them.
      `body = r'''${body.replaceAll("'", '\\u0027')}'''`,
      `request = urllib.request.Request('${url}', body.encode(), {`,
      ...(needsCredentials ? ["    'Authorization': 'Bearer ' + os.environ['ATELIER_TOKEN'],"] : []),
      "    'Content-Type': 'application/json', 'Prefer': 'wait=60'})",
      'answer = json.load(urllib.request.urlopen(request))',
      "print(answer['status'], answer['results'])",
    ],
  }
  return Object.entries(sources).map(([label, lines]) => ({
    ...{ lang: label === 'curl' ? 'Shell' : label, label, source: lines.join('\n') },
  }))
}
