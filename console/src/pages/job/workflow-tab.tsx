/** The workflow that was run: as a tree of nodes, as text, to copy and to take along. Its numbers are the ones that were sent. */
import { useState } from 'preact/hooks'
import { indentJson } from '../../../../lib/json/indent-json.ts'
import { parseLosslessJson } from '../../../../lib/json/lossless-json.ts'
import { getWorkflow } from '../../api/jobs.ts'
import { JsonTree } from '../../components/json/json-tree.tsx'
import { Loaded, Skeleton } from '../../components/state.tsx'
import { CopyButton, saveText, Words } from '../../components/text.tsx'
import { useResource } from '../../state/resource.ts'

export function WorkflowTab({ id }: { readonly id: string }) {
  const [isRaw, setRaw] = useState(false)
  const resource = useResource(`workflow ${id}`, (signal) => getWorkflow(id, signal))
  return (
    <Loaded resource={resource} skeleton={<Skeleton rows={8} />}>
      {(text) => (
        <div class="workflow-tab">
          <div class="graph-bar">
            <div class="segments" role="group" aria-label="Show as">
              <button type="button" aria-pressed={!isRaw} onClick={() => setRaw(false)}>
                Tree
              </button>
              <button type="button" aria-pressed={isRaw} onClick={() => setRaw(true)}>
                JSON
              </button>
            </div>
            <CopyButton text={() => indentJson(text)} label="Copy the workflow" word="Copy" />
            <button
              type="button"
              class="button small"
              onClick={() => saveText(`workflow-${id.slice(0, 8)}.json`, indentJson(text), 'application/json')}
            >
              Download
            </button>
          </div>
          {isRaw ? (
            <pre class="media-text" tabIndex={0} aria-label="Workflow as JSON">
              <Words text={indentJson(text)} isBlock />
            </pre>
          ) : (
            <JsonTree value={parseLosslessJson(text)} name="workflow" isOpen />
          )}
        </div>
      )}
    </Loaded>
  )
}
