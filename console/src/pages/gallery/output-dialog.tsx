/** One output, large; arrows lead to its neighbours. */
import { useEffect } from 'preact/hooks'
import type { GalleryOutput } from '../../api/outputs.ts'
import { Ago } from '../../components/figures.tsx'
import { Icon } from '../../components/icon.tsx'
import { downloadUrl, Media } from '../../components/media/media.tsx'
import { Dialog } from '../../components/overlay/dialog.tsx'
import { Words } from '../../components/words.tsx'
import { hrefOf } from '../../routes.ts'
import { formatBytes } from '../../text/format.ts'
import { toMarkedText } from '../../text/marks.ts'

interface OutputDialogProps {
  readonly output: GalleryOutput
  readonly onMove: (by: 1 | -1) => void
  readonly onClose: () => void
}

export function OutputDialog({ output, onMove, onClose }: OutputDialogProps) {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key] as 1 | -1 | undefined
      if (step !== undefined && !(event.target instanceof HTMLMediaElement)) onMove(step)
    }
    document.addEventListener('keydown', onKey)
    return () => document.removeEventListener('keydown', onKey)
  }, [onMove])
  return (
    <Dialog title={toMarkedText(output.name)} size="large" onClose={onClose}>
      <div class="output-large">
        <Media key={output.asset_id} item={output} />
      </div>
      <p class="row output-line">
        <button type="button" class="icon-button" aria-label="Previous" onClick={() => onMove(-1)}>
          <Icon name="left" />
        </button>
        <button type="button" class="icon-button" aria-label="Next" onClick={() => onMove(1)}>
          <Icon name="right" />
        </button>
        <a href={hrefOf(`/jobs/${output.job_id}#result`)}>
          <Words text={output.job_title === '' ? 'its job' : output.job_title} />
        </a>
        <span class="dim">
          {formatBytes(output.size_bytes)} · <Ago at={output.created_at} />
        </span>
        <span class="top-line-space" />
        <a class="button" href={hrefOf(`/run?from=${output.job_id}`)}>
          Run again…
        </a>
        <a class="button" href={downloadUrl(output.asset_id)} download={toMarkedText(output.name)}>
          <Icon name="down" /> Download
        </a>
      </p>
    </Dialog>
  )
}
