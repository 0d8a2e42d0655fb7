/** Nothing has run yet: three ways to begin. */
import { useState } from 'preact/hooks'
import { BASE } from '../../base.ts'
import { CopyButton } from '../../components/copy-button.tsx'
import { hrefOf } from '../../routes.ts'
import { session } from '../../state/session.ts'
import { RunExample } from './run-example.tsx'

function snippets(): Readonly<Record<string, string>> {
  const address = window.location.origin + BASE
  const needsKey = session.value?.needs_credential === true
  return {
    SDK: [
      "import { Comfy } from '@comfyorg/sdk'",
      `process.env.COMFY_BASE_URL = '${address}'`,
      ...(needsKey ? ['// COMFY_API_KEY in the environment'] : []),
      "const job = await new Comfy().run(await new Comfy().workflows.fromFile('workflow.json'))",
    ].join('\n'),
    curl: [
      `jq '{workflow: .}' workflow.json |`,
      `  curl -sf ${address}/api/v2/jobs${needsKey ? ' -H "Authorization: Bearer $ATELIER_KEY"' : ''} -d @-`,
    ].join('\n'),
    'command line': `npx atelier run workflow.json --out results`,
    'ComfyUI client': `# any client of ComfyUI or of the hosted API: set its address to\n${address}`,
  }
}

export function FirstStart() {
  const all = snippets()
  const [chosen, setChosen] = useState(Object.keys(all)[0])
  return (
    <div class="first-start">
      <section class="card" aria-labelledby="first-example">
        <h2 id="first-example">See it work</h2>
        <p>A small workflow of four nodes that makes a picture. It needs nothing.</p>
        <RunExample isPrimary />
      </section>
      <section class="card" aria-labelledby="first-workflow">
        <h2 id="first-workflow">Run a workflow of yours</h2>
        <p>Drop a JSON file, or a picture that ComfyUI saved: it becomes a form.</p>
        <a class="button" href={hrefOf('/run')}>
          Open a workflow
        </a>
      </section>
      <section class="card wide" aria-labelledby="first-client">
        <h2 id="first-client">Connect a program</h2>
        <div class="segments" role="group" aria-label="Client">
          {Object.keys(all).map((name) => (
            <button key={name} type="button" aria-pressed={chosen === name} onClick={() => setChosen(name)}>
              {name}
            </button>
          ))}
        </div>
        <div class="snippet">
          <pre tabIndex={0} aria-label={`${chosen} example`}>
            {all[chosen]}
          </pre>
          <CopyButton text={all[chosen]} label={`Copy the ${chosen} lines`} />
        </div>
      </section>
    </div>
  )
}
