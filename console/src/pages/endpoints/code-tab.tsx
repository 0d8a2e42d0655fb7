/** How programs call the endpoint. The key is a name, never its text. */
import { stringifyLosslessJson } from '../../../../lib/json/lossless-json.ts'
import type { Endpoint, Version } from '../../api/endpoints.ts'
import { CopyButton } from '../../components/text.tsx'
import { curlLines, needsKey, serviceAddress } from '../../form/run-bar.tsx'
import { query } from '../../routes.ts'
import { indentJson } from '../../text/indent-json.ts'

interface CodeTabProps {
  readonly endpoint: Endpoint
  readonly version: Version
}

export function CodeTab({ endpoint, version }: CodeTabProps) {
  const samples = toSamples(endpoint.name, version, query.value.has('version'))
  return (
    <>
      <p class="long-address">
        As OpenAPI: <a href={endpoint.urls.openapi}>{endpoint.urls.openapi}</a>{' '}
        <CopyButton text={endpoint.urls.openapi} label="Copy the address of the OpenAPI document" />
      </p>
      {Object.entries(samples).map(([language, text]) => (
        <section key={language} aria-label={language}>
          <div class="section-head">
            <h2>{language}</h2>
            <CopyButton text={text} label={`Copy for ${language}`} word="Copy" />
          </div>
          <pre class="code-sample" tabIndex={0}>
            {text}
          </pre>
        </section>
      ))}
    </>
  )
}

/** Each waits up to a minute for the result. A seed is left out: it is drawn. */
function toSamples(name: string, { version, inputs }: Version, isPinned: boolean): Readonly<Record<string, string>> {
  const path = `/api/v2/endpoints/${name}${isPinned ? `@${version}` : ''}/runs`
  const example = inputs.filter(({ type }) => type !== 'seed').map((input) => [input.name, input.example] as const)
  const text = stringifyLosslessJson({ inputs: Object.fromEntries(example) })
  const body = indentJson(text)
  const url = serviceAddress() + path
  // Quotes would end the text of Python; JSON has another word for them.
  const python = `json.loads(r'''${body.replaceAll("'", '\\u0027')}''')`
  return {
    curl: curlLines(path, body).replace("-H 'Content-Type", "-H 'Prefer: wait=60' -H 'Content-Type"),
    TypeScript: [
      `const answer = await fetch('${url}', {`,
      "  method: 'POST',",
      '  headers: {',
      ...(needsKey() ? ["    Authorization: 'Bearer ' + process.env.ATELIER_KEY,"] : []),
      "    'Content-Type': 'application/json',",
      "    Prefer: 'wait=60',",
      '  },',
      `  body: JSON.stringify(${body}),`,
      '})',
      'const { status, results } = await answer.json()',
    ].join('\n'),
    Python: [
      'import json, os, urllib.request',
      `body = ${python}`,
      `request = urllib.request.Request('${url}', json.dumps(body).encode(), {`,
      ...(needsKey() ? ["    'Authorization': f\"Bearer {os.environ['ATELIER_KEY']}\","] : []),
      "    'Content-Type': 'application/json', 'Prefer': 'wait=60'})",
      'answer = json.load(urllib.request.urlopen(request))',
      "print(answer['status'], answer['results'])",
    ].join('\n'),
  }
}
