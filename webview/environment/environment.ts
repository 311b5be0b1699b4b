import '@vscode/codicons/dist/codicon.css';
import '../styles/base.css';
import './form.css';
import './form.ts';
