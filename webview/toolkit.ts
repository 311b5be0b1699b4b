import './nonce.ts';
import {
  provideVSCodeDesignSystem,
  vsCodeBadge,
  vsCodeButton,
  vsCodeProgressRing,
  vsCodeTextField,
} from '@vscode/webview-ui-toolkit';

/** Registers the toolkit's elements. The only file that knows the toolkit: it is archived, and may have to go. */
export function registerToolkit(): void {
  provideVSCodeDesignSystem().register(vsCodeBadge(), vsCodeButton(), vsCodeProgressRing(), vsCodeTextField());
}
