import { useState } from 'preact/hooks'
import { ApiError } from '../../api/client.ts'
import { Icon } from '../../components/icon.tsx'
import { showToast } from '../../components/overlay/toast.tsx'
import { navigate } from '../../routes.ts'
import { submitWorkflow } from '../../state/deeds.ts'
import { EXAMPLE_WORKFLOW } from './example.ts'

/** One press: the example is submitted, and its page shows the picture as soon as it is there. */
export function RunExample({ isPrimary = false }: { readonly isPrimary?: boolean }) {
  const [isBusy, setBusy] = useState(false)
  async function run(): Promise<void> {
    setBusy(true)
    try {
      const { id } = await submitWorkflow(EXAMPLE_WORKFLOW, { example: 'colour card' })
      navigate(`/jobs/${id}`)
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      showToast(error.message)
    } finally {
      setBusy(false)
    }
  }
  return (
    <button type="button" class={`button ${isPrimary ? 'primary' : ''}`} disabled={isBusy} onClick={() => void run()}>
      <Icon name="play" /> Run the example
    </button>
  )
}
